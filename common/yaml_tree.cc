// SPDX-License-Identifier: Apache-2.0
#include "common/yaml_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "common/fd.h"
#include "common/yaml_text.h"

namespace margay {
namespace {

constexpr int kPipeWaitsMax = 100, kPipeWaitMs = 1000;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Leaves the parser from within an event.
struct Refused {
  YamlPlace place;
  std::string message;
};

YamlPlace place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {static_cast<uint32_t>(mark.line) + 1, static_cast<uint32_t>(mark.column) + 1};
}

// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string_view text) : text_(text) {}

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_document_) throw Refused{place_of(mark), "a second document begins, expected only one"};
    seen_document_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(mark, YamlNode::Kind::kNothing);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{place_of(mark), "aliases (*name) are not allowed, write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    // "!" is what the parser says of quoted scalars and blocks, and of the tag "!".
    const bool has_mark = static_cast<size_t>(mark.pos) < text_.size() && text_[static_cast<size_t>(mark.pos)] == '!';
    if (tag != "!" || has_mark) refuse_tag(mark, tag);
    if (expects_key()) return begin_pair(mark, value);
    YamlNode& node = add(mark, YamlNode::Kind::kText);
    node.text = value;
    node.quoted = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A list or map that is being filled. The node's address is stable: its parent grows only after it is closed.
  struct Open {
    YamlNode* node;
    bool awaits_value = false;  // maps: the last child has its key only
    std::unordered_set<std::string> keys;
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) throw Refused{place_of(mark), "anchors (&name) are not allowed"};
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?") throw Refused{place_of(mark), "tags are not allowed, here " + in_quotes(tag)};
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node->kind == YamlNode::Kind::kMap && !open_.back().awaits_value;
  }

  void begin_pair(const YAML::Mark& mark, const std::string& key) {
    Open& map = open_.back();
    if (!map.keys.insert(key).second) {
      throw Refused{place_of(mark), "the key " + in_quotes(key) + " stands twice in one map"};
    }
    YamlNode& child = map.node->children.emplace_back();
    child.key = key;
    child.key_place = child.place = place_of(mark);
    map.awaits_value = true;
  }

  // The node for the value that begins here.
  YamlNode& add(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (expects_key()) throw Refused{place_of(mark), "expected a key of plain text"};
    YamlNode* node = &root_;
    if (!open_.empty()) {
      Open& parent = open_.back();
      if (!parent.awaits_value) parent.node->children.emplace_back();
      parent.awaits_value = false;
      node = &parent.node->children.back();
    }
    node->kind = kind;
    // A value that is left out has no place of its own; its key has.
    if (kind != YamlNode::Kind::kNothing || node->key.empty()) node->place = place_of(mark);
    return *node;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() >= kYamlDepthMax) {
      throw Refused{place_of(mark), "nested deeper than " + std::to_string(kYamlDepthMax) + " levels"};
    }
    YamlNode& node = add(mark, kind);
    open_.push_back({&node, false, {}});
  }

  std::string_view text_;
  YamlNode root_;
  std::vector<Open> open_;
  bool seen_document_ = false;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view name) const {
  if (kind != Kind::kMap) return nullptr;
  const auto it = std::find_if(children.begin(), children.end(), [&](const YamlNode& n) { return n.key == name; });
  return it == children.end() ? nullptr : &*it;
}

Result<YamlNode> parse_yaml(std::string_view text, const std::string& file) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (const auto fault = find_fault(text)) return yaml_error(file, fault->place, fault->message);
  try {
    // yaml-cpp 0.7 takes a quote that is still open after the last line's end as closed, but refuses one with a
    // letter in its last line: a comment in a line of its own brings that about.
    std::istringstream in{std::string(text) + (text.ends_with('\n') ? "#" : "\n#")};
    YAML::Parser parser(in);
    TreeBuilder builder(text);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take();
  } catch (const Refused& refused) {
    return yaml_error(file, refused.place, refused.message);
  } catch (const YAML::Exception& e) {
    return yaml_error(file, place_of(e.mark), e.msg);
  } catch (const std::exception& e) {
    return yaml_error(file, {}, e.what());
  }
}

Result<std::string> read_yaml_text(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return Error{path + ": cannot open: " + std::strerror(errno)};
  std::string text(kYamlBytesMax + 1, '\0');
  size_t filled = 0;
  ssize_t got = 1;
  for (int waits = 0; filled < text.size() && got != 0;) {
    got = read(fd.get(), text.data() + filled, text.size() - filled);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (got < 0 && errno == EAGAIN) {
      pollfd pipe{fd.get(), POLLIN, 0};
      if (++waits > kPipeWaitsMax || poll(&pipe, 1, kPipeWaitMs) == 0) {
        return Error{path + ": cannot read: its writer does not come to an end"};
      }
    } else if (got < 0 && errno != EINTR) {
      return Error{path + ": cannot read: " + std::strerror(errno)};
    }
  }
  text.resize(filled);
  return text;
}

Error yaml_error(const std::string& file, YamlPlace place, const std::string& message) {
  return Error{file + ':' + std::to_string(place.line) + ':' + std::to_string(place.column) + ": " + message};
}

}  // namespace margay
