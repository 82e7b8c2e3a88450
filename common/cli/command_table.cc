// SPDX-License-Identifier: Apache-2.0
#include "common/cli/command_table.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "common/check.h"

namespace margay {
namespace {

constexpr std::string_view kJsonWord = "--json";

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

}  // namespace

const std::vector<Argument>* Arguments::option(std::string_view name) const {
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : &found->second;
}

void CommandTable::add_kind(ArgumentKind kind) { kinds_.push_back(std::move(kind)); }

std::vector<CommandTable::Element> CommandTable::read_elements(std::string_view text) const {
  std::vector<Element> elements;
  for (const Word& word : split_words(text).words) {
    Element element{word.text};
    element.rest = word.text == "WORDS";
    if (std::isupper(static_cast<unsigned char>(word.text.front())) != 0 && !element.rest) {
      const auto kind =
          std::find_if(kinds_.begin(), kinds_.end(), [&](const ArgumentKind& k) { return k.name == word.text; });
      MARGAY_CHECK(kind != kinds_.end());
      element.kind = &*kind;
    }
    elements.push_back(std::move(element));
  }
  return elements;
}

void CommandTable::add(Command command) {
  Compiled compiled;
  const std::string& pattern = command.pattern;
  size_t bracket = std::min(pattern.find('['), pattern.size());
  compiled.plain = read_elements(std::string_view(pattern).substr(0, bracket));
  while (bracket < pattern.size()) {
    const size_t end = pattern.find(']', bracket);
    MARGAY_CHECK(end != std::string::npos && compiled.options.size() < kOptionsMax);
    compiled.options.push_back(read_elements(std::string_view(pattern).substr(bracket + 1, end - bracket - 1)));
    bracket = std::min(pattern.find('[', end), pattern.size());
  }
  compiled.command = std::move(command);
  commands_.push_back(std::move(compiled));
}

std::vector<CommandTable::Position> CommandTable::start() const {
  std::vector<Position> positions;
  for (const Compiled& compiled : commands_) {
    Position position;
    position.compiled = &compiled;
    positions.push_back(std::move(position));
  }
  return positions;
}

bool CommandTable::is_complete(const Position& p) {
  if (p.option != kNoOption) {
    const auto& elements = p.compiled->options[p.option];
    return p.next >= elements.size() || elements[p.next].rest;
  }
  return p.next == p.compiled->plain.size();
}

void CommandTable::add_steps(const Position& p, std::vector<Step>& steps) {
  const Compiled& c = *p.compiled;
  if (p.option == kNoOption && p.next < c.plain.size()) {
    steps.push_back({&p, &c.plain[p.next], kNoOption});
    return;
  }
  if (p.option != kNoOption && p.next < c.options[p.option].size()) {
    steps.push_back({&p, &c.options[p.option][p.next], p.option});
    return;
  }
  for (size_t o = 0; o < c.options.size(); ++o) {
    if (!p.used[o]) steps.push_back({&p, &c.options[o].front(), o});
  }
}

std::vector<CommandTable::Step> CommandTable::steps_of(const std::vector<Position>& positions) {
  std::vector<Step> steps;
  for (const Position& position : positions) add_steps(position, steps);
  return steps;
}

CommandTable::Position CommandTable::advance(const Step& step, std::optional<Argument> argument) {
  Position p = *step.from;
  const bool enters = step.option != kNoOption && p.option != step.option;
  if (enters) {
    p.option = step.option;
    p.used.set(step.option);
    p.next = 0;
  }
  if (!step.element->rest) ++p.next;
  if (step.option == kNoOption) {
    if (argument) p.arguments.plain_.push_back(std::move(*argument));
    return p;
  }
  auto& arguments = p.arguments.options_[p.compiled->options[step.option].front().text];
  if (argument) arguments.push_back(std::move(*argument));
  return p;
}

std::vector<CommandTable::Position> CommandTable::take_arguments(const std::vector<Step>& steps,
                                                                 std::span<const Word> before, const Word& word) {
  std::vector<Position> next;
  for (const Step& step : steps) {
    if (step.element->rest) next.push_back(advance(step, Argument{word.text, word.position}));
    if (step.element->kind == nullptr) continue;
    Result<Argument> argument = read_argument(*step.element->kind, word, before);
    if (argument) next.push_back(advance(step, std::move(*argument)));
  }
  return next;
}

std::vector<std::string> CommandTable::keywords_of(const std::vector<Step>& steps, std::string_view prefix) {
  std::vector<std::string> keywords;
  for (const Step& step : steps) {
    const Element& e = *step.element;
    if (e.kind == nullptr && !e.rest && e.text.starts_with(prefix)) add_once(keywords, e.text);
  }
  return keywords;
}

CommandError CommandTable::not_expected(const std::vector<Step>& steps, std::span<const Word> before,
                                        const Word& word) {
  std::vector<std::string> expected;
  const ArgumentKind* only = nullptr;
  for (const Step& step : steps) {
    const Element& e = *step.element;
    add_once(expected, e.text);
    if (e.kind != nullptr) only = e.kind;
  }
  if (expected.empty()) return {word.position, fmt::format("expected the end of the line, not '{}'", word.text)};
  if (expected.size() == 1 && only != nullptr) {
    return {word.position, read_argument(*only, word, before).error().message};
  }
  std::vector<std::string> all;  // names in place of their kind's
  for (const Step& step : steps) {
    const ArgumentKind* kind = step.element->kind;
    if (kind == nullptr || !kind->names) {
      add_once(all, step.element->text);
      continue;
    }
    for (const std::string& name : kind->names(before)) add_once(all, name);
  }
  return {word.position, fmt::format("expected one of: {}", list_of(all))};
}

// Moves every position over one word; those that cannot fall away.
CommandResult CommandTable::consume(std::span<const Word> before, const Word& word, std::vector<Position>& positions) {
  const std::vector<Step> steps = steps_of(positions);
  const auto take_keyword = [&](const std::string& keyword) {
    std::vector<Position> next;
    for (const Step& step : steps) {
      const Element& e = *step.element;
      if (e.kind == nullptr && !e.rest && e.text == keyword) next.push_back(advance(step, std::nullopt));
    }
    return next;
  };
  std::vector<Position> next;
  if (!word.quoted) next = take_keyword(word.text);
  if (next.empty()) next = take_arguments(steps, before, word);
  if (next.empty() && !word.quoted && !word.text.empty()) {
    const std::vector<std::string> keywords = keywords_of(steps, word.text);
    if (keywords.size() > 1) {
      return CommandError{word.position, fmt::format("'{}' may be any of: {}", word.text, list_of(keywords))};
    }
    if (keywords.size() == 1) next = take_keyword(keywords.front());
  }
  if (next.empty()) return not_expected(steps, before, word);
  positions = std::move(next);
  return {};
}

CommandResult CommandTable::parse(std::string_view line, ParsedLine& out) const {
  out = ParsedLine{};
  if (line.size() > kLineMax) return CommandError{kLineMax + 1, fmt::format("expected at most {} bytes", kLineMax)};
  Words read = split_words(line);
  if (read.open_quote) return CommandError{read.words.back().position, "expected a closing quote for this one"};
  std::vector<Word>& words = read.words;
  if (!words.empty() && words.back().text == kJsonWord && !words.back().quoted) {
    out.json = true;
    words.pop_back();
  }
  if (words.empty()) return {};
  std::vector<Position> positions = start();
  for (size_t i = 0; i < words.size(); ++i) {
    if (CommandResult r = consume(std::span(words).first(i), words[i], positions); !r) return r;
  }
  const auto done = std::find_if(positions.begin(), positions.end(), is_complete);
  if (done == positions.end()) {
    std::vector<std::string> expected;
    for (const Step& step : steps_of(positions)) add_once(expected, step.element->text);
    const std::string_view one_of = expected.size() > 1 ? "one of: " : "";
    return CommandError{line.size() + 1, fmt::format("expected {}{}", one_of, list_of(expected))};
  }
  out.command = &done->compiled->command;
  out.arguments = std::move(done->arguments);
  return {};
}

Completion CommandTable::complete(std::string_view line) const {
  Completion out;
  if (line.size() > kLineMax) return out;
  const Words read = split_words(line);
  const size_t whole = read.words.size() - (read.ends_in_word ? 1 : 0);
  const std::span<const Word> before = std::span(read.words).first(whole);
  std::vector<Position> positions = start();
  for (size_t i = 0; i < whole; ++i) {
    if (!consume(before.first(i), before[i], positions)) return out;
  }
  const std::string prefix = read.ends_in_word ? read.words.back().text : "";
  const bool quoted = read.ends_in_word && read.words.back().quoted;
  for (const Step& step : steps_of(positions)) {
    const Element& e = *step.element;
    if (e.rest) continue;
    if (e.kind == nullptr) {
      if (quoted || !e.text.starts_with(prefix)) continue;
      add_once(out.words, e.text);
      const bool last = step.from->next + 1 == step.from->compiled->plain.size() && step.option == kNoOption;
      add_once(out.hints, fmt::format("{:<16} {}", e.text, last ? step.from->compiled->command.help : "..."));
      continue;
    }
    add_once(out.hints, fmt::format("{:<16} {}", e.kind->name, e.kind->expected));
    if (!e.kind->names) continue;
    for (const std::string& name : e.kind->names(before)) {
      if (name.starts_with(prefix) && out.words.size() < kCandidatesMax) add_once(out.words, quote_if_needed(name));
    }
  }
  return out;
}

std::vector<const Command*> CommandTable::matching(const std::vector<Argument>& words) const {
  std::vector<const Command*> found;
  for (const Compiled& compiled : commands_) {
    const auto& plain = compiled.plain;
    bool matches = words.size() <= plain.size();
    for (size_t i = 0; matches && i < words.size(); ++i) {
      matches = plain[i].kind != nullptr || plain[i].text.starts_with(words[i].text());
    }
    if (matches) found.push_back(&compiled.command);
  }
  return found;
}

}  // namespace margay
