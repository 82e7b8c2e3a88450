// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small files of the state directory, replaced whole: after a crash there is the old one or the new one. Each call
// waits for the disk. Any thread, one a file.

#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"

namespace margay::control {

// Mode 0600; the folder is made where it is missing (but not its parents).
Result<void> replace_file(const std::string& path, std::string_view content);

// Content behind a line with its form, size and checksum: "margay WHAT 1 SIZE XXH3-128\n".
Result<void> write_checked(const std::string& path, std::string_view what, std::string_view content);
// Absent: there is no such file. The error says what is wrong with one that is not whole, or not a WHAT.
Result<std::optional<std::string>> read_checked(const std::string& path, std::string_view what);

}  // namespace margay::control
