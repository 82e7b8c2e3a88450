// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values that several sections of the control plane's part of the site file have in common. Each reports to the
// FieldErrors behind `field` and leaves `out` as it is where nothing stands.

#include <optional>
#include <string>

#include "common/net.h"
#include "common/share.h"
#include "common/token_bucket.h"
#include "common/units.h"
#include "common/yaml_fields.h"

namespace margay::control {

inline constexpr Nanoseconds kIntervalMin = 10 * kMillisecond;
inline constexpr Nanoseconds kIntervalMax = 24 * 3600 * kSecond;
inline constexpr size_t kPathBytesMax = 4095;
inline constexpr double kChangeMax = 400;  // per cent; a Share goes no further

// 10 ms to a day.
void read_interval(const Field& field, Nanoseconds& out);
// Per cent.
void read_share(const Field& field, double max_percent, Share& out);
// A number of 0 to 1.
void read_factor(const Field& field, Share& out);
// `rate` and `burst`.
void read_bucket(const Field& field, TokenRate& bucket);
// http://, with no fields but {address} and {port}.
void read_url(const Field& field, std::string& out);
// A name or address with its port.
void read_host_port(const Field& field, std::string& out);
// ADDRESS:PORT to listen on; the error's example is `address`:`port`.
void read_listen(const Field& field, const char* address, const char* port, std::optional<AddressPort>& out);

}  // namespace margay::control
