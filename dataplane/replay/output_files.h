// SPDX-License-Identifier: Apache-2.0
#pragma once

// One thread.

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/result.h"
#include "dataplane/replay/replay.h"

namespace margay::dp {

// All files that a replay writes, each refused where it is one of the inputs.
class OutputFiles {
 public:
  explicit OutputFiles(const ReplayOptions& options) : options_(options) {}

  Result<std::string> name(const std::string& file) const {
    const std::filesystem::path path = options_.out / file;
    std::vector<std::string> inputs{options_.table};
    for (const ReplayInput& input : options_.inputs) inputs.push_back(input.file);
    for (const std::string& input : inputs) {
      std::error_code none;
      if (std::filesystem::equivalent(path, input, none)) {
        return Error{path.string() + ": is an input of this replay, choose another --out"};
      }
    }
    return path.string();
  }

  Result<CaptureWriter> capture(const std::string& file) const {
    auto path = name(file);
    if (!path) return path.error();
    return CaptureWriter::create(*path);
  }

  Result<std::vector<PortOutput>> ports() const {
    std::vector<PortOutput> outputs;
    for (const PortConfig& port : options_.site.ports) {
      auto wire = capture(port.name + ".pcap");
      if (!wire) return wire.error();
      outputs.push_back({std::move(*wire), std::nullopt});
      if (port.kernel.empty()) continue;
      auto kernel = capture(port.name + "-kernel.pcap");
      if (!kernel) return kernel.error();
      outputs.back().kernel = std::move(*kernel);
    }
    return outputs;
  }

 private:
  const ReplayOptions& options_;
};

}  // namespace margay::dp
