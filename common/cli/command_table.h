// SPDX-License-Identifier: Apache-2.0
#pragma once

// The commands of a daemon: one table, filled at start by one small file a command, read by parser, completion and
// help alike.
//
// A pattern is keywords, arguments (capitals: an ArgumentKind that was added before) and, at its end, options in
// brackets, each at most once and in any order:   show flow [client ADDRESS] [limit COUNT]
// WORDS at the end takes whatever follows. At each place a word is, in this order: a keyword spelled in full, an
// argument, a keyword's unambiguous beginning. `--json` as the last word asks for JSON.
//
// Parsing and completion are pure and bounded by the line's length (kLineMax). Any thread once the table is filled;
// handlers say in their safety note what they need.

#include <bitset>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/argument.h"
#include "common/cli/reply.h"

namespace margay {

class Arguments {
 public:
  const Argument& operator[](size_t i) const { return plain_[i]; }
  size_t size() const { return plain_.size(); }
  // Arguments of an option (named by its first word), nullptr when it is not there.
  const std::vector<Argument>* option(std::string_view name) const;

 private:
  friend class CommandTable;
  std::vector<Argument> plain_;
  std::map<std::string, std::vector<Argument>, std::less<>> options_;
};

struct Command {
  std::string pattern;
  std::string help;    // one line
  std::string safety;  // what it touches, and what that may cost: for help and for whoever changes it
  std::function<CommandResult(const Arguments&, Reply&)> handler;
};

struct ParsedLine {
  const Command* command = nullptr;  // nullptr: an empty line
  Arguments arguments;
  bool json = false;
};

struct Completion {
  std::vector<std::string> words;  // that may stand for the last word of the line, or follow it
  std::vector<std::string> hints;  // a line each for a person: the word, and what it is
};

class CommandTable {
 public:
  static constexpr size_t kLineMax = 4096;       // bytes
  static constexpr size_t kCandidatesMax = 256;  // words of one completion

  void add_kind(ArgumentKind kind);
  // REQUIRES: every capital word of the pattern is a kind's name, or WORDS.
  void add(Command command);

  // On success `out` holds the command and its arguments.
  CommandResult parse(std::string_view line, ParsedLine& out) const;
  Completion complete(std::string_view line) const;
  // Commands whose patterns begin with these words, or with words that begin like them.
  std::vector<const Command*> matching(const std::vector<Argument>& words) const;

 private:
  struct Element {
    std::string text;                    // a keyword, or the kind's name
    const ArgumentKind* kind = nullptr;  // nullptr: a keyword
    bool rest = false;                   // WORDS: comes again and again
  };
  struct Compiled {
    Command command;
    std::vector<Element> plain;
    std::vector<std::vector<Element>> options;
  };
  static constexpr size_t kOptionsMax = 16;
  static constexpr size_t kNoOption = kOptionsMax;
  // How far a line has come in one command.
  struct Position {
    const Compiled* compiled = nullptr;
    size_t option = kNoOption;  // the option we are in, or none
    size_t next = 0;            // element of the plain part, or of that option
    std::bitset<kOptionsMax> used;
    Arguments arguments;
  };
  // One way to go on from a position.
  struct Step {
    const Position* from = nullptr;
    const Element* element = nullptr;
    size_t option = kNoOption;
  };

  std::vector<Element> read_elements(std::string_view text) const;
  std::vector<Position> start() const;
  static bool is_complete(const Position& position);
  static void add_steps(const Position& position, std::vector<Step>& steps);
  static std::vector<Step> steps_of(const std::vector<Position>& positions);
  static Position advance(const Step& step, std::optional<Argument> argument);
  static CommandResult consume(std::span<const Word> before, const Word& word, std::vector<Position>& positions);
  static std::vector<Position> take_arguments(const std::vector<Step>& steps, std::span<const Word> before,
                                              const Word& word);
  static std::vector<std::string> keywords_of(const std::vector<Step>& steps, std::string_view prefix);
  static CommandError not_expected(const std::vector<Step>& steps, std::span<const Word> before, const Word& word);

  std::deque<ArgumentKind> kinds_;  // addresses are kept
  std::deque<Compiled> commands_;
};

}  // namespace margay
