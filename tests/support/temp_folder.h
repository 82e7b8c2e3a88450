// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder of a test's own, gone at the end with all that is in it.

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "common/check.h"

namespace margay::test {

class TempFolder {
 public:
  TempFolder() : path_(std::filesystem::temp_directory_path() / "margay-XXXXXX") {  // mkdtemp(3) fills it in
    MARGAY_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace margay::test
