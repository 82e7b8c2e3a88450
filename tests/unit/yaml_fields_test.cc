// SPDX-License-Identifier: Apache-2.0
#include "common/yaml_fields.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/support/marked_text.h"

namespace margay {
namespace {

using test::MarkedText;

constexpr uint64_t kSecond = 1'000'000'000;

// Reads the value of `k` in a text with `read`; the first error, or nothing.
std::string error_of(const std::string& text, const std::function<void(const Field&)>& read) {
  const auto root = parse_yaml(text, "f.yaml");
  if (!root) return root.error().message;
  FieldErrors errors("f.yaml");
  read(Field(*root, errors)["k"]);
  return errors.first() ? errors.first()->message : "";
}

struct Row {
  std::string value;
  std::string expected;  // of a good value: what it means; of a bad one: the error behind "f.yaml:1:4: k: "
  bool good = true;
};

// `read` gives the value as text, or nothing when it was refused.
void check_rows(std::initializer_list<Row> rows, const std::function<std::string(const Field&)>& read) {
  for (const Row& row : rows) {
    std::string got;
    const std::string error = error_of("k: " + row.value + "\n", [&](const Field& field) { got = read(field); });
    if (row.good) {
      EXPECT_EQ(error, "") << row.value;
      EXPECT_EQ(got, row.expected) << row.value;
    } else {
      EXPECT_EQ(error, "f.yaml:1:4: k: " + row.expected) << row.value;
      EXPECT_EQ(got, "unset") << row.value;
    }
  }
}

constexpr bool kBad = false;

TEST(YamlFields, Integers) {
  const std::string expected = "expected an integer from 1 to 300, got ";
  check_rows({{"1", "1"},
              {"300", "300"},
              {"007", "7"},
              {"0", expected + "\"0\"", kBad},
              {"301", expected + "\"301\"", kBad},
              {"-1", expected + "\"-1\"", kBad},
              {"+1", expected + "\"+1\"", kBad},
              {"1.0", expected + "\"1.0\"", kBad},
              {"0x10", expected + "\"0x10\"", kBad},
              {"1_0", expected + "\"1_0\"", kBad},
              {"1 0", expected + "\"1 0\"", kBad},
              {"18446744073709551617", expected + "\"18446744073709551617\"", kBad},
              {"[1]", expected + "a list", kBad},
              {"{a: 1}", expected + "a map", kBad},
              {"\"1\"", "expected an integer from 1 to 300 without quotes, got \"1\"", kBad}},
             [](const Field& field) {
               uint16_t value = 0;
               return read_integer(field, 1, 300, value) ? std::to_string(value) : "unset";
             });
}

TEST(YamlFields, IntegersUpToTheWidest) {
  check_rows({{"18446744073709551615", "18446744073709551615"}}, [](const Field& field) {
    uint64_t value = 0;
    return read_integer(field, 0, UINT64_MAX, value) ? std::to_string(value) : "unset";
  });
}

TEST(YamlFields, Booleans) {
  check_rows({{"true", "1"},
              {"false", "0"},
              {"yes", "expected true or false, got \"yes\"", kBad},
              {"True", "expected true or false, got \"True\"", kBad},
              {"1", "expected true or false, got \"1\"", kBad},
              {"'true'", "expected true or false without quotes, got \"true\"", kBad}},
             [](const Field& field) {
               bool value = false;
               return read_bool(field, value) ? std::to_string(value) : "unset";
             });
}

TEST(YamlFields, Numbers) {
  const std::string expected = "expected a number from 0 to 1, got ";
  check_rows({{"0", "0.000000"},
              {"1", "1.000000"},
              {"0.5", "0.500000"},
              {"1.0", "1.000000"},
              {"1.01", expected + "\"1.01\"", kBad},
              {"-0.1", expected + "\"-0.1\"", kBad},
              {".5", expected + "\".5\"", kBad},
              {"5.", expected + "\"5.\"", kBad},
              {"1e-1", expected + "\"1e-1\"", kBad},
              {"0.1.2", expected + "\"0.1.2\"", kBad},
              {"nan", expected + "\"nan\"", kBad},
              {"inf", expected + "\"inf\"", kBad},
              {"50%", expected + "\"50%\"", kBad}},
             [](const Field& field) {
               double value = 0;
               return read_number(field, 0, 1, value) ? std::to_string(value) : "unset";
             });
}

TEST(YamlFields, Percentages) {
  const std::string expected = "expected a percentage from 0% to 100%, got ";
  check_rows({{"0%", "0.000000"},
              {"50%", "0.500000"},
              {"100%", "1.000000"},
              {"12.5%", "0.125000"},
              {"101%", expected + "\"101%\"", kBad},
              {"50", expected + "\"50\"", kBad},
              {"-5%", expected + "\"-5%\"", kBad},
              {"'%'", expected + "\"%\"", kBad},
              {"''", expected + "\"\"", kBad},
              {"50 %", expected + "\"50 %\"", kBad}},
             [](const Field& field) {
               double value = 0;
               return read_percentage(field, 0, 100, value) ? std::to_string(value) : "unset";
             });
}

TEST(YamlFields, Durations) {
  const std::string kind = "expected a duration such as 300s or 200ms, got ";
  const std::string range = "expected a duration from 10ms to 24h, got ";
  check_rows({{"10ms", "10000000"},
              {"200ms", "200000000"},
              {"300s", std::to_string(300 * kSecond)},
              {"10m", std::to_string(600 * kSecond)},
              {"1h", std::to_string(3600 * kSecond)},
              {"24h", std::to_string(86400 * kSecond)},
              {"9ms", range + "\"9ms\"", kBad},
              {"0s", range + "\"0s\"", kBad},
              {"25h", range + "\"25h\"", kBad},
              {"1441m", range + "\"1441m\"", kBad},
              {"5", kind + "\"5\"", kBad},
              {"s", kind + "\"s\"", kBad},
              {"1.5s", kind + "\"1.5s\"", kBad},
              {"-1s", kind + "\"-1s\"", kBad},
              {"5 s", kind + "\"5 s\"", kBad},
              {"5sec", kind + "\"5sec\"", kBad},
              {"1d", kind + "\"1d\"", kBad},
              {"18446744073709551615h", kind + "\"18446744073709551615h\"", kBad},  // beyond 64 bits of nanoseconds
              {"18446744073709551616ms", kind + "\"18446744073709551616ms\"", kBad}},
             [](const Field& field) {
               uint64_t value = 0;
               return read_duration(field, 10'000'000, 86400 * kSecond, value) ? std::to_string(value) : "unset";
             });
}

TEST(YamlFields, Rates) {
  const std::string expected = "expected a rate such as 200/s, got ";
  check_rows({{"1/s", "1"},
              {"4294967295/s", "4294967295"},
              {"0/s", expected + "\"0/s\"", kBad},
              {"4294967296/s", expected + "\"4294967296/s\"", kBad},
              {"200", expected + "\"200\"", kBad},
              {"200/m", expected + "\"200/m\"", kBad},
              {"/s", expected + "\"/s\"", kBad}},
             [](const Field& field) {
               uint64_t value = 0;
               return read_rate(field, value) ? std::to_string(value) : "unset";
             });
}

TEST(YamlFields, Texts) {
  const std::string expected = "expected text of 1 to 5 bytes, got ";
  check_rows({{"a", "a"},
              {"abcde", "abcde"},
              {"\"1\"", "1"},
              {"abcdef", expected + "\"abcdef\"", kBad},
              {"''", expected + "\"\"", kBad},
              {"[a]", expected + "a list", kBad},
              {"\"a\\nb\"", "expected text without control characters, got \"a\\x0ab\"", kBad},
              {"\"a\\x7f\"", "expected text without control characters, got \"a\\x7f\"", kBad}},
             [](const Field& field) {
               std::string value;
               return read_text(field, 5, value) ? value : "unset";
             });
}

TEST(YamlFields, Addresses) {
  const std::string mac = "expected a MAC address such as 02:00:00:00:0f:00, got ";
  const std::string station = "expected the MAC address of one station (not multicast, not zero), got ";
  check_rows({{"\"02:00:00:00:0F:00\"", "02:00:00:00:0f:00"},
              {"02:00:00:00:0f:00", "02:00:00:00:0f:00"},
              {"02:00:00:00:0f", mac + "\"02:00:00:00:0f\"", kBad},
              {"\"01:00:5e:00:00:01\"", station + "\"01:00:5e:00:00:01\"", kBad},
              {"\"ff:ff:ff:ff:ff:ff\"", station + "\"ff:ff:ff:ff:ff:ff\"", kBad},
              {"\"00:00:00:00:00:00\"", station + "\"00:00:00:00:00:00\"", kBad}},
             [](const Field& field) {
               MacAddress value;
               return read_mac(field, value) ? value.format() : "unset";
             });
  const std::string ip = "expected an IP address such as 192.0.2.1 or 2001:db8::1, got ";
  const std::string host =
      "expected the IP address of one host (not loopback, multicast, broadcast or unspecified), got ";
  check_rows({{"192.0.2.1", "192.0.2.1"},
              {"2001:db8::1", "2001:db8::1"},
              {"192.0.2", ip + "\"192.0.2\"", kBad},
              {"192.0.2.1/24", ip + "\"192.0.2.1/24\"", kBad},
              {"0.0.0.0", host + "\"0.0.0.0\"", kBad},
              {"\"::\"", host + "\"::\"", kBad},
              {"224.0.0.1", host + "\"224.0.0.1\"", kBad},
              {"ff02::1", host + "\"ff02::1\"", kBad},
              {"255.255.255.255", host + "\"255.255.255.255\"", kBad}},
             [](const Field& field) {
               IpAddress value;
               return read_ip(field, value) ? value.format() : "unset";
             });
  const std::string prefix = "expected an address with its prefix length such as 192.0.2.2/24 or 2001:db8::2/64, got ";
  check_rows({{"192.0.2.2/24", "192.0.2.2/24"},
              {"2001:db8::2/128", "2001:db8::2/128"},
              {"192.0.2.2/33", prefix + "\"192.0.2.2/33\"", kBad},
              {"192.0.2.2", prefix + "\"192.0.2.2\"", kBad}},
             [](const Field& field) {
               Prefix value;
               return read_prefix(field, value) ? value.format() : "unset";
             });
}

enum class Colour { kRed, kGreen };

TEST(YamlFields, Words) {
  constexpr Word<Colour> kWords[] = {{"red", Colour::kRed}, {"green", Colour::kGreen}};
  check_rows({{"red", "0"},
              {"green", "1"},
              {"Red", "expected one of red, green, got \"Red\"", kBad},
              {"blue", "expected one of red, green, got \"blue\"", kBad}},
             [&](const Field& field) {
               Colour value{};
               return read_enum(field, kWords, value) ? std::to_string(static_cast<int>(value)) : "unset";
             });
}

TEST(YamlFields, AbsentFieldsLeaveDefaults) {
  const auto root = parse_yaml("a: 1\n", "f.yaml");
  ASSERT_TRUE(root);
  FieldErrors errors("f.yaml");
  const Field field = Field(*root, errors)["k"]["deeper"][3];
  EXPECT_EQ(field.path(), "k.deeper[3]");
  uint64_t value = 7;
  EXPECT_FALSE(read_integer(field, 1, 2, value));
  EXPECT_FALSE(is_list(field));
  EXPECT_FALSE(is_map(field));
  EXPECT_EQ(value, 7u);
  EXPECT_FALSE(errors.first());
}

TEST(YamlFields, AKeyWithNothingBehindItIsNotAbsent) {
  const auto read = [](const Field& field) {
    uint64_t value = 0;
    read_integer(field, 1, 2, value);
  };
  EXPECT_EQ(error_of("a: 1\nk:\n", read), "f.yaml:2:1: k: expected an integer from 1 to 2, got nothing");
  EXPECT_EQ(error_of("a: 1\nk: ~\n", read), "f.yaml:2:1: k: expected an integer from 1 to 2, got nothing");
  EXPECT_EQ(error_of("k:\n", [](const Field& field) { (void)is_list(field); }),
            "f.yaml:1:1: k: expected a list, got nothing");
  EXPECT_EQ(error_of("k: [1]\n", [](const Field& field) { (void)is_map(field); }),
            "f.yaml:1:4: k: expected a map, got a list");
}

TEST(YamlFields, UnknownKeysNameTheNearest) {
  const auto read = [](const Field& field) { refuse_unknown_keys(field, {"timers", "affinity", "mode"}); };
  EXPECT_EQ(error_of("k: {mode: 1, timers: 2}\n", read), "");
  EXPECT_EQ(error_of("k: {tiemrs: 1}\n", read),
            "f.yaml:1:5: k: unknown key \"tiemrs\", the nearest known one is \"timers\"");
  EXPECT_EQ(error_of("k: {mode: 1, mod: 2}\n", read),
            "f.yaml:1:14: k: unknown key \"mod\", the nearest known one is \"mode\"");
  EXPECT_EQ(error_of("k: {\"a\\nb\": 1}\n", read),
            "f.yaml:1:5: k: unknown key \"a\\x0ab\", the nearest known one is \"mode\"");
}

TEST(YamlFields, NearestByLettersToChange) {
  constexpr std::string_view kKnown[] = {"kitten", "sitting", "mode"};
  EXPECT_EQ(nearest("sittin", kKnown), "sitting");
  EXPECT_EQ(nearest("kiten", kKnown), "kitten");
  EXPECT_EQ(nearest("kitttten", kKnown), "kitten");
  EXPECT_EQ(nearest("nodes", kKnown), "mode");
  EXPECT_EQ(nearest("", kKnown), "mode");  // 4 letters to add against 6 and 7
}

TEST(YamlFields, TheFirstErrorOfTheFileIsKept) {
  FieldErrors errors("f.yaml");
  errors.add_missing({1, 1}, "missing");
  EXPECT_EQ(errors.first()->message, "f.yaml:1:1: missing");
  errors.add({5, 2}, "b");
  errors.add({5, 1}, "a");
  errors.add({7, 1}, "c");
  errors.add({5, 1}, "d");
  EXPECT_EQ(errors.first()->message, "f.yaml:5:1: a") << "what is wrong comes before what is missing";
}

TEST(YamlFields, PathsNameListsAndFreeKeys) {
  const auto root = parse_yaml("a: [{b: {\"192.0.2.1\": x}}]\n", "f.yaml");
  ASSERT_TRUE(root);
  FieldErrors errors("f.yaml");
  const Field field = Field(*root, errors)["a"][size_t{0}]["b"][size_t{0}];
  EXPECT_EQ(field.path(), "a[0].b[\"192.0.2.1\"]");
  field.fail("no");
  EXPECT_EQ(errors.first()->message, "f.yaml:1:23: a[0].b[\"192.0.2.1\"]: no");
}

TEST(YamlFields, LongValuesAreCut) {
  const auto read = [](const Field& field) {
    bool value = false;
    read_bool(field, value);
  };
  EXPECT_EQ(error_of("k: " + std::string(60, 'x') + "\n", read),
            "f.yaml:1:4: k: expected true or false, got \"" + std::string(60, 'x') + "\"");
  EXPECT_EQ(error_of("k: " + std::string(61, 'x') + "\n", read),
            "f.yaml:1:4: k: expected true or false, got \"" + std::string(60, 'x') + "...\"");
}

}  // namespace
}  // namespace margay
