// SPDX-License-Identifier: Apache-2.0
// Any bytes as command lines to a small data plane that has some flows: parsed, completed at every length that ends a
// word, carried out as text and as JSON. Nothing may crash; an error is one line and its position lies within the
// line; what is shown as JSON is JSON; what completion offers is accepted as the beginning of a line.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/check.h"
#include "tests/fuzz/target.h"
#include "tests/support/cli_plane.h"

namespace {

using margay::Completion;
using margay::test::CliPlane;

CliPlane& small_plane() {
  static CliPlane* const cli = [] {
    auto* made = new CliPlane;
    for (int n = 0; n < 20; ++n) {
      made->receive(
          0, margay::test::tcp("198.51.100.7:" + std::to_string(20000 + n), "192.0.2.10:80").flags(margay::test::kSyn));
    }
    made->serve();
    return made;
  }();
  return *cli;
}

void check_run(CliPlane& cli, std::string_view line, bool json) {
  std::string out;
  const margay::Answer a = cli.executor.run(line, json, [&](std::string_view piece) {
    out += piece;
    return true;
  });
  if (!a.result) {
    MARGAY_CHECK(a.result.error().position >= 1 && a.result.error().position <= line.size() + 1);
    MARGAY_CHECK(!a.result.error().message.empty());
  } else if (json && !out.empty()) {
    MARGAY_CHECK(nlohmann::json::accept(out));
  }
}

// Each word that is offered must be accepted where it was offered, or be named as a part of something longer.
void check_completion(CliPlane& cli, std::string_view line) {
  const Completion completion = cli.table.complete(line);
  MARGAY_CHECK(completion.words.size() <= margay::CommandTable::kCandidatesMax + 64);
  if (completion.words.empty()) return;
  const margay::Words words = margay::split_words(line);
  const size_t keep = words.ends_in_word ? words.words.back().position - 1 : line.size();
  const std::string longer = std::string(line.substr(0, keep)) + completion.words.front();
  if (longer.size() > margay::CommandTable::kLineMax) return;
  margay::ParsedLine parsed;
  const margay::CommandResult r = cli.table.parse(longer, parsed);
  MARGAY_CHECK(r || r.error().position > longer.size());  // at most something is missing behind it
}

}  // namespace

FUZZ_TARGET(cli_line) {
  CliPlane& cli = small_plane();
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (int lines = 0; lines < 8 && !rest.empty(); ++lines) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    check_run(cli, line, false);
    check_run(cli, line, true);
    for (size_t n = 0; n <= line.size() && n < 256; ++n) {
      if (n == line.size() || line[n] == ' ') check_completion(cli, line.substr(0, n));
    }
  }
  return 0;
}
