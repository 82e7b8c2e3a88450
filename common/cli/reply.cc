// SPDX-License-Identifier: Apache-2.0
#include "common/cli/reply.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/check.h"

namespace margay {
namespace {

constexpr size_t kBufferBytes = 8192;

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

template <class T, class Format>
std::string join(const std::vector<T>& list, std::string_view separator, Format format) {
  std::string out;
  for (const T& item : list) {
    if (&item != list.data()) out += separator;
    out += format(item);
  }
  return out;
}

std::string spaced(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

struct AsText {
  std::string operator()(std::monostate) const { return "-"; }
  std::string operator()(bool v) const { return v ? "yes" : "no"; }
  std::string operator()(uint64_t v) const { return fmt::to_string(v); }
  std::string operator()(int64_t v) const { return fmt::to_string(v); }
  std::string operator()(double v) const { return fmt::format("{:.3g}", v); }
  std::string operator()(const std::string& v) const { return v.empty() ? "-" : printable(v); }
  std::string operator()(const std::vector<std::string>& v) const { return v.empty() ? "-" : join(v, ", ", printable); }
  std::string operator()(const std::vector<uint64_t>& v) const {
    return v.empty() ? "-" : join(v, " ", [](uint64_t n) { return fmt::to_string(n); });
  }
};

struct AsJson {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(uint64_t v) const { return fmt::to_string(v); }
  std::string operator()(int64_t v) const { return fmt::to_string(v); }
  std::string operator()(double v) const { return nlohmann::json(v).dump(); }
  std::string operator()(const std::string& v) const { return json_string(v); }
  std::string operator()(const std::vector<std::string>& v) const { return "[" + join(v, ",", json_string) + "]"; }
  std::string operator()(const std::vector<uint64_t>& v) const {
    return "[" + join(v, ",", [](uint64_t n) { return fmt::to_string(n); }) + "]";
  }
};

}  // namespace

std::string Cell::text() const { return std::visit(AsText{}, value_); }
std::string Cell::json() const { return std::visit(AsJson{}, value_); }
bool Cell::is_number() const {
  return std::holds_alternative<uint64_t>(value_) || std::holds_alternative<int64_t>(value_) ||
         std::holds_alternative<double>(value_);
}

void Reply::write(std::string_view text) {
  begun_ = true;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Reply::flush() {
  if (!buffer_.empty() && wanted_) wanted_ = sink_(buffer_);
  buffer_.clear();
}

void Reply::begin_member(std::string_view key) {
  write(begun_ ? "," : "{");
  write(json_string(std::string(key)));
  write(":");
}

void Reply::field(std::string_view key, const Cell& value, std::string_view sentence) {
  end_table();
  if (json_) {
    begin_member(key);
    write(value.json());
    return;
  }
  write(sentence.empty() ? fmt::format("{}: {}\n", spaced(std::string(key)), value.text())
                         : fmt::format("{}\n", sentence));
}

void Reply::table(std::string_view key, std::vector<std::string> columns, Layout layout) {
  end_table();
  if (json_) {
    begin_member(key);
    write("[");
  } else if (begun_) {
    write("\n");
  }
  in_table_ = true;
  layout_ = layout;
  key_ = key;
  columns_ = std::move(columns);
  rows_ = 0;
  widths_.clear();
}

void Reply::row(std::vector<Cell> cells) {
  MARGAY_CHECK(in_table_ && cells.size() == columns_.size());
  ++rows_;
  if (json_) return write_json_row(cells);
  if (layout_ == Layout::kBlocks) return write_block(cells);
  if (widths_.empty()) {
    measured_.push_back(std::move(cells));
    if (measured_.size() == kRowsMeasured) flush_measured();
    return;
  }
  std::vector<std::string> texts;
  for (const Cell& cell : cells) texts.push_back(cell.text());
  write_line(texts);
}

void Reply::write_json_row(const std::vector<Cell>& cells) {
  write(rows_ > 1 ? ",\n{" : "\n{");
  for (size_t i = 0; i < cells.size(); ++i) {
    write(fmt::format("{}{}:{}", i > 0 ? "," : "", json_string(columns_[i]), cells[i].json()));
  }
  write("}");
}

// The first cell is the paragraph's title.
void Reply::write_block(const std::vector<Cell>& cells) {
  size_t width = 0;
  for (const std::string& column : columns_) width = std::max(width, column.size());
  if (rows_ > 1) write("\n");
  write(fmt::format("{} {}\n", spaced(columns_.front()), cells.front().text()));
  for (size_t i = 1; i < cells.size(); ++i) {
    write(fmt::format("  {:<{}}  {}\n", spaced(columns_[i]), width, cells[i].text()));
  }
}

void Reply::flush_measured() {
  if (measured_.empty()) return;
  std::vector<std::string> headers;
  for (const std::string& column : columns_) {
    headers.push_back(spaced(column));
    widths_.push_back(column.size());
  }
  right_.assign(columns_.size(), false);
  std::vector<std::vector<std::string>> lines{headers};
  for (const std::vector<Cell>& cells : measured_) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < cells.size(); ++i) {
      texts.push_back(cells[i].text());
      widths_[i] = std::max(widths_[i], texts.back().size());
      if (cells[i].is_number()) right_[i] = true;
    }
    lines.push_back(std::move(texts));
  }
  measured_.clear();
  for (const std::vector<std::string>& line : lines) write_line(line);
}

void Reply::write_line(const std::vector<std::string>& texts) {
  std::string line;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) line += "  ";
    line += right_[i] ? fmt::format("{:>{}}", texts[i], widths_[i]) : fmt::format("{:<{}}", texts[i], widths_[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  write(line + '\n');
}

void Reply::end_table() {
  if (!in_table_) return;
  in_table_ = false;
  if (json_) return write(rows_ > 0 ? "\n]" : "]");
  flush_measured();
  if (rows_ == 0) write(fmt::format("{}: none\n", spaced(key_)));
}

void Reply::finish(bool failed) {
  end_table();
  if (json_ && (begun_ || !failed)) write(begun_ ? "}\n" : "{}\n");
  flush();
}

}  // namespace margay
