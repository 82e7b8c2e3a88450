// SPDX-License-Identifier: Apache-2.0
#include "common/yaml_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/marked_text.h"

namespace margay {
namespace {

using test::MarkedText;

std::string repeat(const std::string& part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(YamlTree, KeepsKindsTextAndPlaces) {
  const auto root = parse_yaml("a: 1\nb:\n  - \"2\"\n  - {c: 'd e'}\nf:\ng: ~\nh: |\n  x\n", "f.yaml");
  ASSERT_TRUE(root) << root.error().message;
  ASSERT_EQ(root->kind, YamlNode::Kind::kMap);
  ASSERT_EQ(root->children.size(), 5u);

  const YamlNode& a = root->children[0];
  EXPECT_EQ(a.key, "a");
  EXPECT_EQ(a.text, "1");
  EXPECT_EQ(a.kind, YamlNode::Kind::kText);
  EXPECT_FALSE(a.quoted);
  EXPECT_EQ(a.key_place, (YamlPlace{1, 1}));
  EXPECT_EQ(a.place, (YamlPlace{1, 4}));

  const YamlNode* b = root->find("b");
  ASSERT_NE(b, nullptr);
  ASSERT_EQ(b->kind, YamlNode::Kind::kList);
  ASSERT_EQ(b->children.size(), 2u);
  EXPECT_TRUE(b->children[0].quoted);
  EXPECT_EQ(b->children[0].place, (YamlPlace{3, 5}));
  const YamlNode* c = b->children[1].find("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->text, "d e");
  EXPECT_TRUE(c->quoted);
  EXPECT_EQ(c->place, (YamlPlace{4, 9}));

  const YamlNode* f = root->find("f");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->kind, YamlNode::Kind::kNothing);
  EXPECT_EQ(f->place, (YamlPlace{5, 1})) << "nothing has no place of its own, its key has";
  EXPECT_EQ(root->find("g")->kind, YamlNode::Kind::kNothing);
  EXPECT_TRUE(root->find("h")->quoted) << "a block is text for certain";
  EXPECT_EQ(root->find("h")->text, "x\n");
  EXPECT_EQ(root->find("i"), nullptr);
}

TEST(YamlTree, TakesTextWithoutContent) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n"}) {
    const auto root = parse_yaml(text, "f.yaml");
    ASSERT_TRUE(root) << root.error().message;
    EXPECT_EQ(root->kind, YamlNode::Kind::kNothing) << text;
  }
}

TEST(YamlTree, TakesByteOrderMarkAndCarriageReturns) {
  const auto root = parse_yaml(
      "\xef\xbb\xbf"
      "a: \"\xc3\xa9\"\r\nb: \"c\"\r\n",
      "f.yaml");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->find("a")->text, "\xc3\xa9");
  EXPECT_EQ(root->find("b")->text, "c");
  EXPECT_EQ(root->find("b")->place.line, 2u);
  // Places do not count the mark, nor does looking back into the text for a tag.
  const auto tagged = parse_yaml(
      "\xef\xbb\xbf"
      "a: ! \"x\"\n",
      "f.yaml");
  ASSERT_FALSE(tagged);
  EXPECT_EQ(tagged.error().message, "f.yaml:1:4: tags are not allowed, here \"!\"");
}

struct Refused {
  std::string text;  // '^' marks the place of the error
  std::string message;
};

TEST(YamlTree, RefusesWhatItDoesNotTake) {
  const Refused rows[] = {
      {"a: ^&x 1\n", "anchors (&name) are not allowed"},
      {"a: ^&x {b: 1}\n", "anchors (&name) are not allowed"},
      {"a: ^&x [1]\n", "anchors (&name) are not allowed"},
      {"a: ^*x\n", "the referenced anchor is not defined"},
      {"a: ^!x 1\n", "tags are not allowed, here \"!x\""},
      {"a: ^!!int 1\n", "tags are not allowed, here \"tag:yaml.org,2002:int\""},
      {"a: ^! \"x\"\n", "tags are not allowed, here \"!\""},
      {"a: ^!x {b: 1}\n", "tags are not allowed, here \"!x\""},
      {"a: 1\nb: 2\n^a: 3\n", "the key \"a\" stands twice in one map"},
      {"a: {b: 1, ^b: 2}\n", "the key \"b\" stands twice in one map"},
      {"a: 1\n^\"a\": 2\n", "the key \"a\" stands twice in one map"},
      {"^[a]: 1\n", "expected a key of plain text"},
      {"^{a: 1}: 1\n", "expected a key of plain text"},
      {"a: 1\n^---\nb: 1\n", "a second document begins, expected only one"},
      {"a: ^\x01\n", "the control character 0x01 is not allowed"},
      {"a: ^\x7f\n", "the control character 0x7f is not allowed"},
      {"a: b\nc: \xc3\xa9 ^\xff\n", "the byte 0xff is not UTF-8 here"},
      {"^\xc0\x80", "the byte 0xc0 is not UTF-8 here"},  // overlong (RFC 3629 §3)
      {"^\xe0\x9f\xbf", "the byte 0xe0 is not UTF-8 here"},
      {"^\xf0\x8f\xbf\xbf", "the byte 0xf0 is not UTF-8 here"},
      {"^\xed\xa0\x80", "the byte 0xed is not UTF-8 here"},      // a surrogate
      {"^\xf4\x90\x80\x80", "the byte 0xf4 is not UTF-8 here"},  // beyond U+10FFFF
      {"a: ^\xe2\x82", "the byte 0xe2 is not UTF-8 here"},       // cut short
  };
  for (const Refused& row : rows) {
    const MarkedText marked(row.text);
    const auto root = parse_yaml(marked.text, "f.yaml");
    ASSERT_FALSE(root) << row.text;
    EXPECT_EQ(root.error().message, "f.yaml:" + marked.place + ": " + row.message);
  }
}

TEST(YamlTree, TakesEveryLengthOfUtf8) {
  for (const char* text : {"\x7e", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    const auto root = parse_yaml("a: \"" + std::string(text) + "\"\n", "f.yaml");
    ASSERT_TRUE(root) << root.error().message;
    EXPECT_EQ(root->find("a")->text, text);
  }
}

TEST(YamlTree, RefusesZeroBytes) {
  const auto root = parse_yaml(std::string_view("a: b\0c\n", 7), "f.yaml");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().message, "f.yaml:1:5: the control character 0x00 is not allowed");
}

TEST(YamlTree, RefusesWhatTheParserRefuses) {
  const Refused rows[] = {
      {"a: 1\nb: c^: d\n", "illegal map value"},
      {"a: [1\n^", "end of sequence flow not found"},
      {"a: {b: 1\n^", "end of map flow not found"},
      {"a: \"\\y^\"\n", "unknown escape character: y"},
      {"%YAML 9.9\n---\na: 1\n", "YAML major version too large"},
  };
  for (const Refused& row : rows) {
    const MarkedText marked(row.text);
    const auto root = parse_yaml(marked.text, "f.yaml");
    ASSERT_FALSE(root) << row.text;
    EXPECT_TRUE(root.error().message.starts_with("f.yaml:" + marked.place)) << root.error().message;
    EXPECT_TRUE(root.error().message.ends_with(": " + row.message)) << root.error().message;
  }
}

TEST(YamlTree, RefusesQuotesThatStayOpen) {
  for (const char* text : {"a: \"", "a: \"\n", "a: \"b", "a: \"b\n", "a: 'b\n\n", "a: \"b\\\n", "\""}) {
    const auto root = parse_yaml(text, "f.yaml");
    ASSERT_FALSE(root) << text;
    EXPECT_TRUE(root.error().message.ends_with(": illegal EOF in scalar")) << root.error().message;
  }
}

TEST(YamlTree, BoundsNesting) {
  struct Brackets {
    std::string open, close;
  };
  const Brackets rows[] = {{"[", "]"}, {"{a: ", "}"}, {"- ", ""}};
  for (const Brackets& row : rows) {
    const auto nested = [&](size_t depth) { return repeat(row.open, depth) + "1" + repeat(row.close, depth) + "\n"; };
    EXPECT_TRUE(parse_yaml(nested(kYamlDepthMax), "f.yaml")) << row.open;
    const auto deeper = parse_yaml(nested(kYamlDepthMax + 1), "f.yaml");
    ASSERT_FALSE(deeper) << row.open;
    const std::string place = "1:" + std::to_string(row.open.size() * kYamlDepthMax + 1);
    EXPECT_EQ(deeper.error().message, "f.yaml:" + place + ": nested deeper than 32 levels");
  }
}

TEST(YamlTree, BoundsWhatHostileTextCosts) {
  // None of these may crash or run out of stack, whatever they say.
  for (const char* part :
       {"- ", "? ", "a: ", "&a ", "! ", "!a ", "*a ", "'", "\"\\", "|\n", "%A\n", "---\n", ",", ":"}) {
    const auto root = parse_yaml(repeat(part, 100'000), "f.yaml");
    if (!root) {
      EXPECT_TRUE(root.error().message.starts_with("f.yaml:")) << part;
    }
  }
  EXPECT_EQ(parse_yaml(std::string(1001, '['), "f.yaml").error().message,
            "f.yaml:1:1001: more than 1000 brackets are open");
  EXPECT_EQ(parse_yaml(std::string(1001, '{'), "f.yaml").error().message,
            "f.yaml:1:1001: more than 1000 brackets are open");
  EXPECT_TRUE(parse_yaml("a: \"" + std::string(1000, '[') + "\"", "f.yaml"));
}

TEST(YamlTree, BoundsLength) {
  std::string text = "a: 1\n#";
  text.resize(kYamlBytesMax, 'x');
  EXPECT_TRUE(parse_yaml(text, "f.yaml"));
  text += 'x';
  const auto root = parse_yaml(text, "f.yaml");
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().message, "f.yaml:1:1: longer than 16777216 bytes");
}

TEST(YamlTree, ReadsFiles) {
  const std::string path = testing::TempDir() + "yaml_tree_test.yaml";
  std::ofstream(path) << "a: 1\n";
  const auto text = read_yaml_text(path);
  std::remove(path.c_str());
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "a: 1\n");

  EXPECT_EQ(read_yaml_text(path).error().message, path + ": cannot open: No such file or directory");
  EXPECT_EQ(read_yaml_text("/").error().message, "/: cannot read: Is a directory");
}

TEST(YamlTree, WaitsForNoPipe) {
  const std::string path = testing::TempDir() + "yaml_tree_test.pipe";
  std::remove(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ::alarm(20);
  const auto nobody = read_yaml_text(path);
  ASSERT_TRUE(nobody) << nobody.error().message;
  EXPECT_EQ(*nobody, "");
  const int writer = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::write(writer, "a: 1\n", 5), 5);
  EXPECT_EQ(read_yaml_text(path).error().message, path + ": cannot read: its writer does not come to an end");
  ::alarm(0);
  ::close(writer);
  std::remove(path.c_str());
}

TEST(YamlTree, NeverReadsMoreThanAFileMayHave) {
  const auto text = read_yaml_text("/dev/zero");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->size(), kYamlBytesMax + 1);
  EXPECT_FALSE(parse_yaml(*text, "f.yaml"));
}

}  // namespace
}  // namespace margay
