// SPDX-License-Identifier: Apache-2.0
#include "common/site/site_reader.h"

#include "common/site/site_sections.h"
#include "common/yaml_fields.h"

namespace margay {
namespace {

void read_top(const Field& root, SiteConfig& config) {
  refuse_unknown_keys(root, {"site", "state_directory", "dataplane", "forwarders", "accelerators", "scis", "control",
                             "c_sma", "cps", "security"});
  read_text(root["site"], kIdBytesMax, config.site);
}

void read_root(const Field& root, SiteConfig& config) {
  read_top(root, config);
  if (require(root["dataplane"])) read_dataplane(root["dataplane"], config);
  read_forwarders(root, config);
  refuse_not_built(root["accelerators"]);
  read_scis(root, config);
  check_other_programs(root);
}

}  // namespace

Result<SiteConfig> read_site(const YamlNode& tree, const std::string& file) {
  FieldErrors errors(file);
  const Field root(tree, errors);
  SiteConfig config;
  config.file = file;
  if (is_map(root)) read_root(root, config);
  if (!errors.first()) check_site(root, config);
  if (errors.first()) return *errors.first();
  return config;
}

bool tells_of_scis(const YamlNode& tree) {
  FieldErrors unused("");
  const Field root(tree, unused);
  return root["dataplane"].present() || root["forwarders"].present() || root["scis"].present();
}

Result<SiteConfig> read_site_without_scis(const YamlNode& tree, const std::string& file) {
  FieldErrors errors(file);
  const Field root(tree, errors);
  SiteConfig config;
  config.file = file;
  if (is_map(root)) {
    read_top(root, config);
    refuse_not_built(root["accelerators"]);
    check_other_programs(root);
  }
  if (errors.first()) return *errors.first();
  return config;
}

Result<SiteConfig> parse_site(std::string_view text, const std::string& file) {
  const auto tree = parse_yaml(text, file);
  if (!tree) return tree.error();
  return read_site(*tree, file);
}

Result<SiteConfig> read_site_file(const std::string& path) {
  const auto text = read_yaml_text(path);
  if (!text) return text.error();
  return parse_site(*text, path);
}

}  // namespace margay
