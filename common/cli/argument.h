// SPDX-License-Identifier: Apache-2.0
#pragma once

// The words of a command line and what they may mean. Pure: no state, no I/O; any thread.
//
// Words are separated by white space. A word in double quotes may hold white space (\" and \\ inside) and is never
// taken for a keyword. Positions count bytes from 1; what is missing at the end of a line stands one past its end.

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/net.h"
#include "common/result.h"

namespace margay {

// What is wrong with a line, and where. 1 <= position <= length of the line + 1.
struct CommandError {
  size_t position = 1;
  std::string message;
};

// Result<void> with a position. An Error without one points to the line's first word.
class [[nodiscard]] CommandResult {
 public:
  CommandResult() = default;
  CommandResult(CommandError error) : error_(std::move(error)) {}
  CommandResult(const Error& error) : error_(CommandError{1, error.message}) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  // REQUIRES: !has_value()
  const CommandError& error() const { return *error_; }

 private:
  std::optional<CommandError> error_;
};

struct Word {
  std::string text;
  size_t position = 1;
  bool quoted = false;
};

struct Words {
  std::vector<Word> words;
  bool open_quote = false;    // the last word's quote is not closed
  bool ends_in_word = false;  // nothing separates the last word from the end of the line
};
Words split_words(std::string_view line);
std::string quote_if_needed(std::string_view word);

enum class ArgumentType : uint8_t { kName, kNumber, kDuration, kAddress };

// A kind of argument, named in patterns by capitals.
struct ArgumentKind {
  std::string name;      // "SI-ID"
  std::string expected;  // "the SI-ID of an instance of that SCI"
  ArgumentType type = ArgumentType::kName;
  uint64_t min = 0, max = std::numeric_limits<uint64_t>::max();  // numbers; durations in nanoseconds
  // The names that there are, given the words before; then no other name is accepted. Empty: any name.
  std::function<std::vector<std::string>(std::span<const Word> before)> names = {};
};

struct Argument {
  std::variant<std::string, uint64_t, std::chrono::nanoseconds, IpAddress> value;
  size_t position = 1;

  const std::string& text() const { return std::get<std::string>(value); }
  uint64_t number() const { return std::get<uint64_t>(value); }
  std::chrono::nanoseconds duration() const { return std::get<std::chrono::nanoseconds>(value); }
  const IpAddress& address() const { return std::get<IpAddress>(value); }
  CommandError error(std::string message) const { return {position, std::move(message)}; }
};

// The error says what was expected, without a position.
Result<Argument> read_argument(const ArgumentKind& kind, const Word& word, std::span<const Word> before);

// "600s", "250ms", "10m", "1h": digits and one unit of ns, us, ms, s, m, h, d.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// "a b c", at most a dozen of them.
std::string list_of(std::span<const std::string> names);

}  // namespace margay
