// SPDX-License-Identifier: Apache-2.0
#pragma once

// A line of input from a terminal, by libedit: editing, history, completion by the tab key, help by `?`. One object
// at a time; one thread.

#include <optional>
#include <string>

#include "common/cli/command_table.h"

struct editline;
struct history;

namespace margay {

class LineEditor {
 public:
  using Completer = std::function<Completion(std::string_view)>;

  LineEditor(std::string prompt, std::string history_file, Completer complete);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Nothing at the end of the input.
  std::optional<std::string> read();

 private:
  static char* prompt_of(editline* edit);
  static unsigned char on_tab(editline* edit, int key);
  static unsigned char on_question_mark(editline* edit, int key);

  std::string prompt_;
  std::string history_file_;
  Completer complete_;
  editline* edit_;
  history* history_;
};

}  // namespace margay
