// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of advertisement.h's functions: rows and what they are made of. Any thread.

#include <string>
#include <string_view>

#include "control/northbound/core/messages.h"
#include "control/record/wire_values.h"
#include "margay/v1/advertisement.pb.h"

namespace margay::northbound {

using control::WireReader;

void put(const RowVersion& version, v1::RowVersion& out);
void put(const RowKey& key, v1::RowKey& out);
void put(const Withdrawal& withdrawal, v1::Withdrawal& out);
void put(const Position& position, v1::Position& out);
std::string bytes_of(const Digest& digest);  // 16 bytes, the highest first

RowVersion take(WireReader& reader, std::string_view field, const v1::RowVersion& in);
RowKey take(WireReader& reader, const v1::RowKey& in);
Row take(WireReader& reader, const v1::Row& in, Nanoseconds now);
Withdrawal take(WireReader& reader, const v1::Withdrawal& in);
Position take(WireReader& reader, const v1::Position& in);
Digest take_digest(WireReader& reader, const std::string& in);
std::string take_id(WireReader& reader, std::string_view field, const std::string& in);

}  // namespace margay::northbound
