// SPDX-License-Identifier: Apache-2.0
#include "control/cps/config.h"

#include <set>

#include "common/net.h"
#include "common/sci_config.h"
#include "common/site/site_reader.h"
#include "common/yaml_fields.h"
#include "common/yaml_text.h"
#include "common/yaml_tree.h"
#include "control/site_sections.h"

namespace margay::cps {
namespace {

constexpr size_t kPathBytesMax = 4095, kSocketBytesMax = 107;

void read_c_sma(const Field& field, TrustedCSma& out) {
  if (require(field["identity"])) read_text(field["identity"], kIdBytesMax, out.identity);
  const Field keys = field["keys"], cs_ids = field["cs_ids"];
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string& id = keys.node()->children[i].key;
    if (id.empty() || id.size() > kIdBytesMax) keys[i].fail_key("expected a key's id of 1 to 255 bytes");
    read_text(keys[i], kPathBytesMax, out.keys[id]);
  }
  if (!require(cs_ids)) return;
  for (size_t i = 0; i < cs_ids.size(); ++i) read_text(cs_ids[i], kIdBytesMax, out.cs_ids.emplace_back());
}

void read_cps(const Field& field, CpsConfig& out) {
  std::string text;
  if (read_text(field["listen"], kIdBytesMax, text)) {
    out.listen = text;
    if (!AddressPort::parse(text)) field["listen"].fail_expected("an address with port such as 0.0.0.0:7444");
  }
  read_text(field["cli"], kSocketBytesMax, out.cli_socket);
  read_duration(field["window"], kSecond, 24 * 3600 * kSecond, out.window);
  read_integer(field["max_rows"], 1, 10'000'000, out.max_rows);
  if (read_text(field["state"], kPathBytesMax, text) && text != "none") {
    out.state = text;
    if (text.find('/') == std::string::npos)
      field["state"].fail_expected("none, or the path of a file with a '/' in it");
  }
  const Field list = field["c_smas"];
  if (!require(list)) return;
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    read_c_sma(list[i], out.c_smas.emplace_back());
    if (!seen.insert(out.c_smas.back().identity).second) {
      list[i]["identity"].fail_expected("an identity that stands once");
    }
  }
}

}  // namespace

Result<CpsConfig> parse_cps(std::string_view text, const std::string& file) {
  const auto tree = parse_yaml(text, file);
  if (!tree) return tree.error();
  const auto rest = tells_of_scis(*tree) ? read_site(*tree, file) : read_site_without_scis(*tree, file);
  if (!rest) return rest.error();
  CpsConfig config;
  config.file = file;
  FieldErrors errors(file);
  const Field root(*tree, errors);
  if (require(root["cps"])) read_cps(root["cps"], config);
  if (require(root["security"])) control::read_security(root["security"], config.security);
  if (errors.first()) return *errors.first();
  return config;
}

Result<CpsConfig> read_cps_file(const std::string& path) {
  const auto text = read_yaml_text(path);
  if (!text) return text.error();
  return parse_cps(*text, path);
}

}  // namespace margay::cps
