// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program's command line. CLI11 reads it, and is compiled here alone: a file that includes it takes as long as ten.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace margay {

// First what there is, with where it goes; then read(). Names are written as "-i,--interactive"; what stands in a
// variable before is the default, and --help shows it unless it is empty or 0. One thread.
class CommandLine {
 public:
  enum class Need { kOptional, kRequired };

  // Without a version there is no --version.
  CommandLine(const std::string& program, const std::string& about, const std::string& version = {});
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  void flag(const std::string& names, bool& to, const std::string& help);
  void text(const std::string& names, std::string& to, const std::string& help, Need need = Need::kOptional,
            const std::string& type = "TEXT");
  // Once or more, one text each time.
  void texts(const std::string& names, std::vector<std::string>& to, const std::string& help);
  void whole(const std::string& names, uint64_t& to, const std::string& help, uint64_t min, uint64_t max);
  void seconds(const std::string& names, double& to, const std::string& help, double min, double max);
  void footer(const std::string& text);
  // From the first word on that is no option everything is the program's own; read() leaves it here.
  void rest(std::vector<std::string>& to);

  // Nothing when the program may go on; otherwise its exit status: 0 after --help and --version, 2 after a line on
  // standard error that says what is wrong.
  std::optional<int> read(int argc, const char* const* argv);

 private:
  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace margay
