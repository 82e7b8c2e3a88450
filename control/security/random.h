// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace margay::security {

// Bytes that nobody can guess. Any thread. Ends the process where the system has none to give.
std::string random_bytes(size_t count);

}  // namespace margay::security
