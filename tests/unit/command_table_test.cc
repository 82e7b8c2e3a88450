// SPDX-License-Identifier: Apache-2.0

// The command line's grammar: words, keywords by their beginning, typed arguments, options, positions, completion.

#include "common/cli/command_table.h"

#include <gtest/gtest.h>

namespace margay {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

class CommandTableTest : public ::testing::Test {
 protected:
  CommandTableTest() {
    const auto ports = [](std::span<const Word>) { return std::vector<std::string>{"net0", "net1", "odd one"}; };
    table_.add_kind({.name = "PORT", .expected = "the name of a port", .names = ports});
    table_.add_kind({.name = "NAME", .expected = "a name"});
    table_.add_kind({.name = "COUNT", .expected = "a number", .type = ArgumentType::kNumber, .min = 1, .max = 100});
    table_.add_kind(
        {.name = "DURATION", .expected = "a duration", .type = ArgumentType::kDuration, .max = 3'600'000'000'000});
    table_.add_kind({.name = "ADDRESS", .expected = "an address", .type = ArgumentType::kAddress});
    for (const char* pattern :
         {"show port info all", "show port info PORT", "show port stats all", "show sci", "show instance", "show slots",
          "show slots audit", "start", "stop", "show flow [client ADDRESS] [instance NAME NAME] [limit COUNT]",
          "set instance NAME drain [DURATION]", "set instance NAME weight COUNT", "help [WORDS]"}) {
      table_.add({pattern, std::string("help of ") + pattern, "", {}});
    }
  }

  // "pattern" on success, else "position: message".
  std::string parse(std::string_view line) {
    const CommandResult r = table_.parse(line, parsed_);
    if (!r) return std::to_string(r.error().position) + ": " + r.error().message;
    return parsed_.command == nullptr ? "" : parsed_.command->pattern;
  }

  CommandTable table_;
  ParsedLine parsed_;
};

TEST_F(CommandTableTest, TakesWholeKeywordsAndUnambiguousBeginnings) {
  EXPECT_EQ(parse("show port info all"), "show port info all");
  EXPECT_EQ(parse("  sh\tpo i a  "), "show port info all");
  EXPECT_EQ(parse("show slots"), "show slots");
  EXPECT_EQ(parse("show slots audit"), "show slots audit");
  EXPECT_EQ(parse(""), "");
  EXPECT_EQ(parse("   "), "");
}

TEST_F(CommandTableTest, PlacesTheFirstWrongWord) {
  EXPECT_EQ(parse("show prot stats all"), "6: expected one of: port sci instance slots flow");
  EXPECT_EQ(parse("frobnicate"), "1: expected one of: show start stop set help");
  EXPECT_EQ(parse("show sci x"), "10: expected the end of the line, not 'x'");
  EXPECT_EQ(parse("show s"), "6: 's' may be any of: sci slots");
  EXPECT_EQ(parse("  sta x"), "7: expected the end of the line, not 'x'");
}

TEST_F(CommandTableTest, MissingWordsStandBehindTheEnd) {
  EXPECT_EQ(parse("show port"), "10: expected one of: info stats");
  EXPECT_EQ(parse("show port "), "11: expected one of: info stats");
  EXPECT_EQ(parse("show flow limit"), "16: expected COUNT");
  EXPECT_EQ(parse("set instance a weight"), "22: expected COUNT");
}

TEST_F(CommandTableTest, ClosedNamesAreListedAndQuotable) {
  EXPECT_EQ(parse("show port info net1"), "show port info PORT");
  EXPECT_EQ(parsed_.arguments[0].text(), "net1");
  EXPECT_EQ(parsed_.arguments[0].position, 16U);
  EXPECT_EQ(parse("show port info \"odd one\""), "show port info PORT");
  EXPECT_EQ(parsed_.arguments[0].text(), "odd one");
  EXPECT_EQ(parse("show port info net7"), "16: expected one of: all net0 net1 \"odd one\"");
  // A word in quotes is never a keyword.
  EXPECT_EQ(parse("show port info \"all\""), "16: expected one of: all net0 net1 \"odd one\"");
  EXPECT_EQ(parse("show port info \"net0"), "16: expected a closing quote for this one");
}

TEST_F(CommandTableTest, AnArgumentGoesBeforeAKeywordsBeginning) {
  table_.add_kind({.name = "WHO", .expected = "a name"});
  table_.add({"greet all", "", "", {}});
  table_.add({"greet WHO", "", "", {}});
  EXPECT_EQ(parse("greet al"), "greet WHO");
  EXPECT_EQ(parse("greet all"), "greet all");
}

TEST_F(CommandTableTest, NumbersHaveBounds) {
  EXPECT_EQ(parse("set instance a weight 1"), "set instance NAME weight COUNT");
  EXPECT_EQ(parsed_.arguments[1].number(), 1U);
  EXPECT_EQ(parse("set instance a weight 100"), "set instance NAME weight COUNT");
  for (const char* wrong : {"0", "101", "-1", "1x", "0x1", "18446744073709551616", "\"\""}) {
    const std::string line = std::string("set instance a weight ") + wrong;
    EXPECT_EQ(parse(line).substr(0, 34), "23: expected a number, 1 to 100, n") << line;
  }
}

TEST_F(CommandTableTest, DurationsCarryTheirUnit) {
  const auto of = [](std::string_view text) { return parse_duration(text); };
  EXPECT_EQ(*of("0s"), nanoseconds(0));
  EXPECT_EQ(*of("7ns"), nanoseconds(7));
  EXPECT_EQ(*of("7us"), nanoseconds(7'000));
  EXPECT_EQ(*of("250ms"), nanoseconds(250'000'000));
  EXPECT_EQ(*of("10m"), seconds(600));
  EXPECT_EQ(*of("2h"), seconds(7200));
  EXPECT_EQ(*of("1d"), seconds(86400));
  for (const char* wrong : {"", "10", "s", "1.5s", "-1s", "10 s", "10sec", "106752d", "18446744073709551616s"}) {
    EXPECT_FALSE(of(wrong)) << wrong;
  }
  EXPECT_TRUE(of("106751d"));  // 2^63 - 1 ns are 106751.99 days
}

TEST_F(CommandTableTest, DurationsAndAddressesAreArguments) {
  EXPECT_EQ(parse("set instance a drain 30s"), "set instance NAME drain [DURATION]");
  ASSERT_NE(parsed_.arguments.option("DURATION"), nullptr);
  EXPECT_EQ(parsed_.arguments.option("DURATION")->at(0).duration(), seconds(30));
  EXPECT_EQ(parse("set instance a drain"), "set instance NAME drain [DURATION]");
  EXPECT_EQ(parsed_.arguments.option("DURATION"), nullptr);
  EXPECT_EQ(parse("set instance a drain 61m"), "22: expected a duration, 0 s to 3600 s, not '61m'");
  EXPECT_EQ(parse("show flow client 192.0.2.300"), "18: expected an address, not '192.0.2.300'");
}

TEST_F(CommandTableTest, OptionsComeInAnyOrderAndOnce) {
  EXPECT_EQ(parse("show flow limit 5 client 2001:db8::1 instance x y"),
            "show flow [client ADDRESS] [instance NAME NAME] [limit COUNT]");
  const Arguments& arguments = parsed_.arguments;
  EXPECT_EQ(arguments.option("limit")->at(0).number(), 5U);
  EXPECT_EQ(arguments.option("client")->at(0).address().format(), "2001:db8::1");
  EXPECT_EQ(arguments.option("instance")->at(1).text(), "y");
  EXPECT_EQ(parse("show flow limit 5 limit 6"), "19: expected one of: client instance");
  EXPECT_EQ(parse("show flow instance x"), "21: expected NAME");
}

TEST_F(CommandTableTest, JsonIsTheLastWord) {
  EXPECT_EQ(parse("show sci --json"), "show sci");
  EXPECT_TRUE(parsed_.json);
  EXPECT_EQ(parse("show sci"), "show sci");
  EXPECT_FALSE(parsed_.json);
  EXPECT_EQ(parse("show --json sci"), "6: expected one of: port sci instance slots flow");
}

TEST_F(CommandTableTest, WordsTakeTheRest) {
  EXPECT_EQ(parse("help show \"x y\" z"), "help [WORDS]");
  ASSERT_EQ(parsed_.arguments.option("WORDS")->size(), 3U);
  EXPECT_EQ(parsed_.arguments.option("WORDS")->at(1).text(), "x y");
  EXPECT_EQ(table_.matching(*parsed_.arguments.option("WORDS")).size(), 0U);
  EXPECT_EQ(parse("help show sl"), "help [WORDS]");
  EXPECT_EQ(table_.matching(*parsed_.arguments.option("WORDS")).size(), 2U);
}

TEST_F(CommandTableTest, CompletesWordsNamesAndOptions) {
  using List = std::vector<std::string>;
  EXPECT_EQ(table_.complete("sh").words, List{"show"});
  EXPECT_EQ(table_.complete("st").words, (List{"start", "stop"}));
  EXPECT_EQ(table_.complete("show s").words, (List{"sci", "slots"}));
  EXPECT_EQ(table_.complete("show port info ").words, (List{"all", "net0", "net1", "\"odd one\""}));
  EXPECT_EQ(table_.complete("show port info n").words, (List{"net0", "net1"}));
  EXPECT_EQ(table_.complete("show port info \"od").words, List{"\"odd one\""});
  EXPECT_EQ(table_.complete("show flow client 192.0.2.1 ").words, (List{"instance", "limit"}));
  EXPECT_EQ(table_.complete("nonsense ").words, List{});
  EXPECT_EQ(table_.complete("show sci ").words, List{});
  const List hints = table_.complete("show flow client ").hints;
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_NE(hints[0].find("an address"), std::string::npos);
}

TEST_F(CommandTableTest, LongLinesAreRefused) {
  EXPECT_EQ(parse(std::string(4097, ' ')), "4097: expected at most 4096 bytes");
  EXPECT_EQ(parse(std::string(4088, ' ') + "show sci"), "show sci");
}

TEST(QuoteIfNeeded, ReadsBackAsOneWord) {
  for (const std::string word :
       {"plain", "", "two words", "a\"b", "\"", "back\\slash and space", "[2001:db8::10]:80"}) {
    const Words read = split_words(quote_if_needed(word));
    ASSERT_EQ(read.words.size(), 1U) << word;
    EXPECT_EQ(read.words[0].text, word);
    EXPECT_FALSE(read.open_quote);
  }
}

}  // namespace
}  // namespace margay
