// SPDX-License-Identifier: Apache-2.0
#include "common/cli/line_editor.h"

#include <histedit.h>

#include <algorithm>
#include <cstdio>

namespace margay {
namespace {

constexpr int kHistoryLines = 1000;

LineEditor* self_of(EditLine* edit) {
  void* self = nullptr;
  el_get(edit, EL_CLIENTDATA, &self);
  return static_cast<LineEditor*>(self);
}

std::string text_before_cursor(EditLine* edit) {
  const LineInfo* line = el_line(edit);
  return {line->buffer, line->cursor};
}

void print_list(const std::vector<std::string>& lines) {
  std::fputc('\n', stdout);
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
  std::fflush(stdout);
}

std::string common_beginning(const std::vector<std::string>& words) {
  std::string common = words.front();
  for (const std::string& word : words) {
    const auto end = std::mismatch(common.begin(), common.end(), word.begin(), word.end()).first;
    common.erase(end, common.end());
  }
  return common;
}

// How much of the line's end the completed word stands for.
size_t length_of_last_word(const std::string& line) {
  const Words read = split_words(line);
  return read.ends_in_word ? line.size() - (read.words.back().position - 1) : 0;
}

}  // namespace

LineEditor::LineEditor(std::string prompt, std::string history_file, Completer complete)
    : prompt_(std::move(prompt)),
      history_file_(std::move(history_file)),
      complete_(std::move(complete)),
      edit_(el_init("margay", stdin, stdout, stderr)),
      history_(history_init()) {
  HistEvent event;
  ::history(history_, &event, H_SETSIZE, kHistoryLines);
  ::history(history_, &event, H_SETUNIQUE, 1);
  if (!history_file_.empty()) ::history(history_, &event, H_LOAD, history_file_.c_str());
  el_set(edit_, EL_CLIENTDATA, this);
  el_set(edit_, EL_PROMPT, &LineEditor::prompt_of);
  el_set(edit_, EL_SIGNAL, 1);
  el_set(edit_, EL_EDITOR, "emacs");
  el_set(edit_, EL_HIST, ::history, history_);
  el_set(edit_, EL_ADDFN, "margay-complete", "complete the word", &LineEditor::on_tab);
  el_set(edit_, EL_ADDFN, "margay-help", "say what may follow", &LineEditor::on_question_mark);
  el_set(edit_, EL_BIND, "^I", "margay-complete", nullptr);
  el_set(edit_, EL_BIND, "?", "margay-help", nullptr);
  el_source(edit_, nullptr);
}

LineEditor::~LineEditor() {
  HistEvent event;
  if (!history_file_.empty()) ::history(history_, &event, H_SAVE, history_file_.c_str());
  history_end(history_);
  el_end(edit_);
}

std::optional<std::string> LineEditor::read() {
  int length = 0;
  const char* line = el_gets(edit_, &length);
  if (line == nullptr || length <= 0) return std::nullopt;
  std::string text(line, static_cast<size_t>(length));
  text.erase(text.find_last_not_of(" \r\n") + 1);
  HistEvent event;
  if (!text.empty()) ::history(history_, &event, H_ENTER, text.c_str());
  return text;
}

char* LineEditor::prompt_of(editline* edit) { return self_of(edit)->prompt_.data(); }

unsigned char LineEditor::on_tab(editline* edit, int) {
  const std::string line = text_before_cursor(edit);
  const Completion completion = self_of(edit)->complete_(line);
  if (completion.words.empty()) return CC_REFRESH_BEEP;
  const size_t last = length_of_last_word(line);
  std::string common = common_beginning(completion.words);
  if (completion.words.size() == 1) common += ' ';
  if (common.size() > last) {
    el_deletestr(edit, static_cast<int>(last));
    el_insertstr(edit, common.c_str());
    return CC_REDISPLAY;
  }
  print_list(completion.words);
  return CC_REDISPLAY;
}

unsigned char LineEditor::on_question_mark(editline* edit, int) {
  const Completion completion = self_of(edit)->complete_(text_before_cursor(edit));
  print_list(completion.hints.empty() ? std::vector<std::string>{"(nothing: press return)"} : completion.hints);
  return CC_REDISPLAY;
}

}  // namespace margay
