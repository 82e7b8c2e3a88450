// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages of the northbound as Advertisements of proto/margay/v1, and back. What comes in is checked strictly: the
// error names the field. Pure functions; any thread.

#include <cstddef>

#include "common/result.h"
#include "common/units.h"
#include "control/northbound/core/messages.h"

namespace margay::v1 {
class Advertisement;
class Row;
}  // namespace margay::v1

namespace margay::northbound {

inline constexpr size_t kIdMax = 255;  // bytes of a CS-ID or CSCI-ID (D-25) and of an identity

// Fills in the message, which is empty before. A row's `measured_at` becomes an age at `now` (monotonic).
// REQUIRES: ids are UTF-8, and rows at most as many as sizes allow
void to_wire(const Message& message, Nanoseconds now, v1::Advertisement& out);
void to_wire(const Row& row, Nanoseconds now, v1::Row& out);

// `measured_at` may lie before the clock's beginning: it wraps, and `now - measured_at` is the age all the same.
Result<Message> message_of(const v1::Advertisement& in, Nanoseconds now);
Result<Row> row_of(const v1::Row& in, Nanoseconds now);

}  // namespace margay::northbound
