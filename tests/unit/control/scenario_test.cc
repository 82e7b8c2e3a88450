// SPDX-License-Identifier: Apache-2.0
// The files of tests/scenarios/, an SCI's, and of tests/scenarios/c_sma/: NAME.jsonl goes through replay, NAME.expected
// says what must come out. There a line that begins with # is a comment; any other is a JSON object:
//   {"at": T, KIND: {...}}               an action of that kind at that time; T may be [from, to]
//   {"after": T, "of": NAME, KIND: ...}  so long after the line of that name, or else after the line before
//   "name": N                            names the line;  "csci_id" or "c_sma": of whom
//   {"kinds": [KIND...]}                 these are looked at, too
// The actions of each kind that a file names must be the named ones, no more and no fewer, in their order; messages of
// each body to C-PSes are a kind, "sent batch". An object must have the fields that are named, with these values; null:
// must not be there.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "control/record/replay.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::control {
namespace {

using Json = nlohmann::json;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<Json> replayed(const std::vector<std::string>& lines) {
  std::vector<Json> out;
  Replay replay({}, [&out](std::string_view line) { out.push_back(Json::parse(line)); });
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto done = replay.line(lines[i]);
    EXPECT_TRUE(done) << "line " << i + 1 << ": " << done.error().message;
  }
  return out;
}

// Of "12.5s": nanoseconds.
int64_t time_in(const Json& text) {
  v1::Record record;
  const auto status = google::protobuf::util::JsonStringToMessage(R"({"at":)" + text.dump() + "}", &record);
  EXPECT_TRUE(status.ok()) << text;
  return record.at().seconds() * 1'000'000'000 + record.at().nanos();
}

bool covers(const Json& expected, const Json& actual) {
  if (expected.is_array()) {
    if (!actual.is_array() || actual.size() != expected.size()) return false;
    return std::equal(expected.begin(), expected.end(), actual.begin(), covers);
  }
  if (!expected.is_object()) return expected == actual;
  if (!actual.is_object()) return false;
  return std::all_of(expected.items().begin(), expected.items().end(), [&](const auto& item) {
    const auto found = actual.find(item.key());
    if (item.value().is_null()) return found == actual.end();
    return found != actual.end() && covers(item.value(), *found);
  });
}

const std::set<std::string> kWords = {"at", "after", "of", "name", "csci_id", "c_sma", "kinds"};
std::string field_of(const Json& line) {
  for (const auto& [key, value] : line.items()) {
    if (!kWords.contains(key) && key != "wall") return key;
  }
  return {};
}
std::string kind_of(const Json& line) {
  const std::string field = field_of(line);
  if (field != "sent") return field;
  for (const auto& [key, value] : line["sent"]["message"].items()) {
    if (key != "header") return "sent " + key;
  }
  return field;
}

class Judge {
 public:
  explicit Judge(const std::vector<Json>& actions) {
    for (const Json& action : actions) actions_[kind_of(action)].push_back(action);
  }

  void expect(const Json& line) {
    if (line.contains("kinds")) {
      for (const auto& kind : line["kinds"]) next_[kind];
      return;
    }
    const std::string kind = kind_of(line), field = field_of(line);
    size_t& next = next_[kind];
    ASSERT_LT(next, actions_[kind].size()) << "no more of this kind: " << line;
    const Json& action = actions_[kind][next++];
    const int64_t at = time_in(action["at"]);
    EXPECT_TRUE(covers(line[field], action[field])) << "expected " << line << "\ngot      " << action;
    for (const char* who : {"csci_id", "c_sma"}) {
      EXPECT_TRUE(!line.contains(who) || line[who] == action[who]) << line << "\ngot      " << action;
    }
    const bool relative = line.contains("after");
    const Json& when = relative ? line["after"] : line["at"];
    const int64_t base = !relative ? 0 : line.contains("of") ? named_.at(line["of"].get<std::string>()) : before_;
    EXPECT_GE(at, base + time_in(when.is_array() ? when[0] : when)) << "too early: " << line << "\ngot      " << action;
    EXPECT_LE(at, base + time_in(when.is_array() ? when[1] : when)) << "too late: " << line << "\ngot      " << action;
    before_ = at;
    if (line.contains("name")) named_[line["name"].get<std::string>()] = at;
  }

  void finish() {
    for (const auto& [kind, next] : next_) {
      if (next < actions_[kind].size()) ADD_FAILURE() << "not expected: " << actions_[kind][next];
    }
  }

 private:
  std::map<std::string, std::vector<Json>> actions_;
  std::map<std::string, size_t> next_;  // of each kind that is looked at
  std::map<std::string, int64_t> named_;
  int64_t before_ = 0;
};

class Scenario : public testing::TestWithParam<std::string> {
 protected:
  std::string path = std::string(MARGAY_SCENARIOS) + "/" + GetParam();
  std::vector<std::string> input = lines_of(path + ".jsonl");
};

TEST_P(Scenario, DoesWhatTheDocumentSays) {
  Judge judge(replayed(input));
  for (const std::string& line : lines_of(path + ".expected")) {
    if (line.empty() || line.front() == '#') continue;
    judge.expect(Json::parse(line));
  }
  judge.finish();
}

// Everything that is a wall clock's, wherever it stands.
void drop_stamps(Json& value) {
  if (value.is_object()) {
    for (const char* key : {"wall", "timestamp", "time"}) value.erase(key);
  }
  if (!value.is_structured()) return;
  for (Json& part : value) drop_stamps(part);
}

// Sets the wall clock of each line from the second on: an hour ahead and an hour back in turn.
std::string with_jumping_clock(const std::string& line, size_t number) {
  v1::Record record;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(line, &record).ok());
  const int64_t jump = number % 2 == 0 ? 3600 : -3600;
  record.mutable_wall()->set_seconds(1'767'225'600 + record.at().seconds() + jump);
  return json_line(record);
}

// A C-SMA looks at time stamps: there it is no matter of course.
class SciScenario : public Scenario {};

TEST_P(SciScenario, AWallClockThatJumpsByAnHourMovesStampsAlone) {
  std::vector<std::string> jumping = input;
  for (size_t i = 1; i < jumping.size(); ++i) jumping[i] = with_jumping_clock(jumping[i], i);
  std::vector<Json> expected = replayed(input), actual = replayed(jumping);
  EXPECT_NE(expected, actual);
  for (auto* list : {&expected, &actual}) {
    for (Json& action : *list) drop_stamps(action);
  }
  EXPECT_EQ(expected, actual);
}

// Their names, with that of the folder.
std::vector<std::string> scenarios(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(MARGAY_SCENARIOS + ("/" + folder))) {
    if (file.path().extension() == ".jsonl") names.push_back(folder + file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}
std::string name_of_file(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}
INSTANTIATE_TEST_SUITE_P(Files, Scenario, testing::ValuesIn(scenarios("")), name_of_file);
INSTANTIATE_TEST_SUITE_P(Files, SciScenario, testing::ValuesIn(scenarios("")), name_of_file);
INSTANTIATE_TEST_SUITE_P(CSma, Scenario, testing::ValuesIn(scenarios("c_sma/")), name_of_file);

TEST(Scenarios, TheJudgeSeesWhatIsWrong) {
  const Json actual = {{"a", 1}, {"b", {{"c", "x"}, {"d", {1, 2}}}}};
  EXPECT_TRUE(covers(Json::object(), actual));
  EXPECT_TRUE(covers({{"b", {{"d", {1, 2}}}}, {"e", nullptr}}, actual));
  EXPECT_FALSE(covers({{"a", 2}}, actual));
  EXPECT_FALSE(covers({{"a", nullptr}}, actual));
  EXPECT_FALSE(covers({{"e", 1}}, actual));
  EXPECT_FALSE(covers({{"b", {{"d", {1}}}}}, actual));
  EXPECT_FALSE(covers({{"b", {{"c", {{"y", 1}}}}}}, actual));
}

}  // namespace
}  // namespace margay::control
