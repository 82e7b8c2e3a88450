// SPDX-License-Identifier: Apache-2.0
#include "control/site_reader.h"

#include <algorithm>
#include <filesystem>

#include "common/site/site_reader.h"
#include "common/site/site_restart.h"
#include "common/site/site_sections.h"
#include "common/yaml_fields.h"
#include "common/yaml_tree.h"
#include "control/site_sections.h"
#include "control/site_values.h"

namespace margay::control {
namespace {

constexpr size_t kSocketBytesMax = 107;  // sockaddr_un, with its zero

constexpr Word<Role> kRoles[] = {{"sci", Role::kSci}, {"c-sma", Role::kCSma}, {"both", Role::kBoth}};

void read_http(const Field& http, std::optional<AddressPort>& listen) {
  if (is_map(http) && require(http["listen"])) read_listen(http["listen"], "127.0.0.1", "7480", listen);
}

void read_reports(const Field& field, ReportCopies& reports) {
  std::string text;
  if (!read_text(field, kPathBytesMax, text)) return;
  if (text == "stdout") {
    reports.to = ReportCopies::To::kStdout;
  } else if (text.find('/') != std::string::npos) {
    reports = {ReportCopies::To::kFile, text};
  } else if (text != "none") {
    field.fail_expected("stdout, none, or the path of a file with a '/' in it");
  }
}

// What one of several sockets and files is named, none of the others may be.
void check_paths(const Field& control, const SiteSpec& spec, const std::string& site_file) {
  const std::string& cli = spec.cli_socket;
  if (cli == spec.site.cli_socket || cli == spec.site.control_socket) {
    control["cli"].fail_expected("a socket of its own, none of `dataplane`");
  }
  const auto place = [](const std::string& path) { return std::filesystem::absolute(path).lexically_normal(); };
  if (spec.reports.to == ReportCopies::To::kFile && place(spec.reports.file) == place(site_file)) {
    control["reports"].fail_expected("a file of its own, not this one");
  }
}

void read_pulled(const Field& field, const Field& security, SiteSpec& spec) {
  if (!field.present()) return;
  read_pulled_by(field, security, spec.pulled_by);
  if (spec.role == Role::kCSma) field.fail_key("is for processes that run SCIs, expected role sci or both");
}

// Their reports are here already.
void check_pull(const Field& pull, const SiteSpec& spec) {
  for (size_t i = 0; i < spec.c_sma->pull.size(); ++i) {
    const std::string& csci_id = spec.c_sma->pull[i].csci_id;
    const bool here = std::any_of(spec.scis.begin(), spec.scis.end(), [&](const SciSpec& s) {
      return s.csci_id == csci_id && !spec.reports_to.contains(csci_id);
    });
    if (here) pull[i]["csci_id"].fail_expected("an SCI of another process");
  }
}

void read_scis_parts(const Field& root, SiteSpec& spec) {
  const Field data_plane = root["dataplane"]["control"];
  const std::string expected = "the socket of the data plane to join";
  if (!data_plane.present()) {
    data_plane.fail_missing("is missing, expected " + expected);
  } else if (spec.site.control_socket.empty()) {
    data_plane.fail_expected(expected);
  }
  for (size_t i = 0; i < spec.site.scis.size(); ++i) {
    spec.scis.push_back(spec_of(spec.site.scis[i]));
    read_sci(root["scis"][i], spec.scis.back());
    const Field to = root["scis"][i]["reports_to"];
    if (to.present()) read_reports_to(to, root["security"], spec.reports_to[spec.scis[i].csci_id]);
  }
}

void read_own_parts(const Field& root, SiteSpec& spec, const std::string& site_file) {
  const Field control = root["control"];
  read_text(root["state_directory"], kPathBytesMax, spec.state_directory);
  read_enum(control["role"], kRoles, spec.role);
  read_text(control["cli"], kSocketBytesMax, spec.cli_socket);
  read_http(control["http"], spec.http_listen);
  read_pulled(control["pulled_by"], root["security"], spec);
  read_reports(control["reports"], spec.reports);

  check_paths(control, spec, site_file);

  if (spec.role != Role::kCSma) read_scis_parts(root, spec);
  read_security(root["security"], spec.security);
  const Field c_sma = root["c_sma"];
  if (spec.role == Role::kCSma) require(c_sma);
  if (c_sma.present() && spec.role != Role::kSci) {
    read_c_sma(c_sma, root["security"], spec.site.scis, spec.c_sma.emplace());
    check_pull(c_sma["pull"], spec);
  }
  if (spec.role != Role::kCSma) return;
  spec.site.scis.clear();  // another process runs them
  spec.site.control_socket.clear();
}

// A file for the C-SMA alone, which tells of no SCI.
bool is_without_scis(const YamlNode& tree) {
  FieldErrors unused("");
  const Field role = Field(tree, unused)["control"]["role"];
  return role.present() && role.node()->text == "c-sma" && !tells_of_scis(tree);
}

}  // namespace

Result<SiteSpec> parse_site(std::string_view text, const std::string& file) {
  const auto tree = parse_yaml(text, file);
  if (!tree) return tree.error();
  auto site = is_without_scis(*tree) ? read_site_without_scis(*tree, file) : read_site(*tree, file);
  if (!site) return site.error();
  SiteSpec spec;
  spec.site = std::move(*site);
  FieldErrors errors(file);
  read_own_parts(Field(*tree, errors), spec, file);
  if (errors.first()) return *errors.first();
  return spec;
}

Result<SiteSpec> read_site_file(const std::string& path) {
  const auto text = read_yaml_text(path);
  if (!text) return text.error();
  return parse_site(*text, path);
}

SciSpec spec_of(const SciConfig& config) {
  SciSpec spec{.csci_id = config.csci_id, .cs_id = config.cs_id};
  spec.degradation_factor = Share{config.degradation_factor};
  spec.drain_deadline = config.drain_deadline;
  spec.tells_load = config.balance == Balance::kResourceAware;
  for (const InstanceConfig& i : config.instances) {
    spec.instances.push_back({.id = i.id,
                              .address = i.address.format(),
                              .port = i.port,
                              .max_sessions = i.max_sessions,
                              .weight = i.weight,
                              .barred = i.security_level < config.security_level_min});
  }
  return spec;
}

std::vector<std::string> needs_restart(const SiteSpec& now, const SiteSpec& next) {
  std::vector<std::string> keys = margay::needs_restart(now.site, next.site);
  const auto compare = [&keys](const char* key, bool same) {
    if (!same) keys.emplace_back(key);
  };
  const auto text = [](const std::optional<AddressPort>& listen) { return listen ? listen->format() : ""; };
  compare("state_directory", now.state_directory == next.state_directory);
  compare("control.role", now.role == next.role);
  compare("control.cli", now.cli_socket == next.cli_socket);
  compare("control.http.listen", text(now.http_listen) == text(next.http_listen));
  compare("control.pulled_by", text(now.pulled_by.grpc) == text(next.pulled_by.grpc) &&
                                   text(now.pulled_by.http) == text(next.pulled_by.http) &&
                                   now.pulled_by.identity == next.pulled_by.identity);
  compare("control.reports", now.reports == next.reports);
  compare("security", now.security == next.security);
  compare("c_sma", now.c_sma.has_value() == next.c_sma.has_value());
  if (!now.c_sma || !next.c_sma) return keys;
  compare("c_sma.identity", now.c_sma->core.identity == next.c_sma->core.identity);
  compare("c_sma.listen", now.c_sma->listen == next.c_sma->listen);
  return keys;
}

}  // namespace margay::control
