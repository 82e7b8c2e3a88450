// SPDX-License-Identifier: Apache-2.0
#include "control/collection/http/exposition.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

namespace margay::control {
namespace {

bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':'; }
bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

// What is left of a line.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : rest_(line) {}

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool at_end() const { return rest_.empty(); }
  std::string_view take_name() {
    if (rest_.empty() || !begins_name(rest_.front())) return {};
    size_t end = 1;
    while (end < rest_.size() && in_name(rest_[end])) ++end;
    return take_first(end);
  }
  std::string_view take_word() { return take_first(std::min(rest_.find_first_of(" \t"), rest_.size())); }

  // Behind the opening quote, up to the closing one: \\, \" and \n are escapes. False when it does not end.
  bool take_quoted(std::string& out) {
    while (!rest_.empty()) {
      const char c = take_first(1).front();
      if (c == '"') return true;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (rest_.empty()) return false;
      const char escaped = take_first(1).front();
      out += escaped == 'n' ? '\n' : escaped;
    }
    return false;
  }

 private:
  std::string_view take_first(size_t n) {
    const std::string_view first = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return first;
  }

  std::string_view rest_;
};

bool parse_value(std::string_view word, double& out) {
  if (word == "+Inf" || word == "Inf") {
    out = std::numeric_limits<double>::infinity();
  } else if (word == "-Inf") {
    out = -std::numeric_limits<double>::infinity();
  } else if (word == "NaN") {
    out = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (!word.empty() && word.front() == '+') word.remove_prefix(1);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), out);
    return error == std::errc{} && end == word.data() + word.size();
  }
  return true;
}

using Types = std::unordered_map<std::string, SeriesType>;

SeriesType type_of(std::string_view word) {
  if (word == "gauge") return SeriesType::kGauge;
  if (word == "counter") return SeriesType::kCounter;
  if (word == "histogram") return SeriesType::kHistogram;
  if (word == "summary") return SeriesType::kSummary;
  return SeriesType::kUntyped;
}

// The family that a series belongs to: its own name, or that without the suffix of a part.
SeriesType type_of_series(const Types& types, const std::string& name) {
  const auto own = types.find(name);
  if (own != types.end()) return own->second;
  for (const std::string_view suffix : {"_bucket", "_sum", "_count", "_total"}) {
    if (name.size() <= suffix.size() || name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0) continue;
    const auto family = types.find(name.substr(0, name.size() - suffix.size()));
    if (family != types.end()) return family->second;
  }
  return SeriesType::kUntyped;
}

// False: one TYPE too many.
bool take_comment(Cursor cursor, Types& types) {
  cursor.skip_blanks();
  if (cursor.take_word() != "TYPE") return true;
  cursor.skip_blanks();
  const std::string name(cursor.take_word());
  cursor.skip_blanks();
  types[name] = type_of(cursor.take_word());
  return types.size() <= kSeriesMax;
}

// Behind the opening brace. Empty when it is well; else what is wrong.
std::string take_labels(Cursor& cursor, Series& series) {
  for (;;) {
    cursor.skip_blanks();
    if (cursor.take('}')) return {};
    const std::string_view name = cursor.take_name();
    cursor.skip_blanks();
    if (name.empty() || !cursor.take('=')) return "expected a label such as mode=\"idle\"";
    cursor.skip_blanks();
    auto& [key, value] = series.labels.emplace_back(name, "");
    if (!cursor.take('"') || !cursor.take_quoted(value)) return "label " + key + ": expected a value in quotes";
    if (series.labels.size() > kLabelsMax) return "more than " + std::to_string(kLabelsMax) + " labels";
    cursor.skip_blanks();
    if (cursor.take(',')) continue;
    return cursor.take('}') ? "" : "expected , or } behind label " + key;
  }
}

std::string take_series(Cursor cursor, Series& series) {
  series.name = cursor.take_name();
  if (series.name.empty()) return "expected a name of letters, digits, _ and :";
  cursor.skip_blanks();
  if (cursor.take('{')) {
    const std::string wrong = take_labels(cursor, series);
    if (!wrong.empty()) return wrong;
  }
  cursor.skip_blanks();
  if (!parse_value(cursor.take_word(), series.value)) return series.name + ": expected a number";
  return {};  // a time stamp or an exemplar may follow
}

}  // namespace

const std::string* Series::label(std::string_view key) const {
  const auto found = std::find_if(labels.begin(), labels.end(), [&](const auto& l) { return l.first == key; });
  return found == labels.end() ? nullptr : &found->second;
}

Result<std::vector<Series>> parse_exposition(std::string_view text) {
  std::vector<Series> all;
  Types types;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    Cursor cursor(line);
    cursor.skip_blanks();
    if (cursor.at_end()) continue;
    const std::string where = "line " + std::to_string(number);
    if (cursor.take('#')) {
      if (!take_comment(cursor, types)) return Error{where + ": more than " + std::to_string(kSeriesMax) + " types"};
      continue;
    }
    if (all.size() == kSeriesMax) return Error{where + ": more than " + std::to_string(kSeriesMax) + " series"};
    const std::string wrong = take_series(cursor, all.emplace_back());
    if (!wrong.empty()) return Error{where + ": " + wrong};
    all.back().type = type_of_series(types, all.back().name);
  }
  return all;
}

}  // namespace margay::control
