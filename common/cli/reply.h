// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a command answers: fields and tables, written once and shown either as aligned text for a person or as one
// JSON document for a program:   {"version":3,"flows":[{"client":...},...],"more":true}
//
// Rows stream: text columns take their widths from the first kRowsMeasured rows, JSON elements go out one by one, so
// that a list of any length needs bounded memory. Not thread-safe: one reply a command.

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace margay {

// A value as text and JSON know it; an empty one is "-" and null.
class Cell {
 public:
  Cell() = default;
  template <std::same_as<bool> B>
  Cell(B value) : value_(value) {}
  template <std::unsigned_integral N>
  requires(!std::same_as<N, bool>) Cell(N value) : value_(uint64_t{value}) {}
  template <std::signed_integral N>
  Cell(N value) : value_(int64_t{value}) {}
  Cell(double value) : value_(value) {}
  Cell(std::string value) : value_(std::move(value)) {}
  Cell(std::string_view value) : value_(std::string(value)) {}
  Cell(const char* value) : value_(std::string(value)) {}
  Cell(std::vector<std::string> value) : value_(std::move(value)) {}
  Cell(std::vector<uint64_t> value) : value_(std::move(value)) {}

  std::string text() const;  // one line: bytes that would steer a terminal are shown as '?'
  std::string json() const;
  bool is_number() const;

 private:
  std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string, std::vector<std::string>,
               std::vector<uint64_t>>
      value_;
};

class Reply {
 public:
  // Takes a piece of the answer; false when nobody reads any more.
  using Sink = std::function<bool(std::string_view)>;
  enum class Layout { kColumns, kBlocks };  // text: one line a row, or one paragraph a row
  static constexpr size_t kRowsMeasured = 64;

  Reply(Sink sink, bool json) : sink_(std::move(sink)), json_(json) {}

  // A single value; its text is `sentence` when there is one, else "key: value".
  void field(std::string_view key, const Cell& value, std::string_view sentence = {});
  // Begins a table; rows belong to the last one begun. Keys are the JSON's, and with spaces for '_' the text's.
  void table(std::string_view key, std::vector<std::string> columns, Layout layout = Layout::kColumns);
  // REQUIRES: as many cells as columns.
  void row(std::vector<Cell> cells);

  // `quit`: whoever sent the command is to end.
  void end_session() { ends_session_ = true; }
  bool ends_session() const { return ends_session_; }
  // False once nobody reads: long lists stop then.
  bool wanted() const { return wanted_; }

  // Closes the document. `failed`: nothing is shown if nothing was.
  void finish(bool failed);

 private:
  void begin_member(std::string_view key);
  void end_table();
  void write_json_row(const std::vector<Cell>& cells);
  void write_block(const std::vector<Cell>& cells);
  void write_line(const std::vector<std::string>& texts);
  void flush_measured();
  void write(std::string_view text);
  void flush();

  Sink sink_;
  bool json_;
  bool begun_ = false;  // something was written
  bool wanted_ = true;
  bool ends_session_ = false;

  bool in_table_ = false;
  Layout layout_ = Layout::kColumns;
  std::string key_;
  std::vector<std::string> columns_;
  uint64_t rows_ = 0;
  std::vector<std::vector<Cell>> measured_;
  std::vector<size_t> widths_;
  std::vector<bool> right_;
  std::string buffer_;
};

}  // namespace margay
