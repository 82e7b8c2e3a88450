// SPDX-License-Identifier: Apache-2.0
#pragma once

// The steps of reading a site file, one file each; common/site/site_reader.cc calls them in this order. All report
// to the FieldErrors behind `root`; check_site may be called only when nothing has been reported yet.

#include <optional>
#include <string>
#include <string_view>

#include "common/site/site_config.h"
#include "common/yaml_fields.h"

namespace margay {

// site_reader_ports.cc: `dataplane` and `forwarders`, but for the ports that forwarders name.
void read_dataplane(const Field& dataplane, SiteConfig& config);
void read_forwarders(const Field& root, SiteConfig& config);

// site_reader_sci.cc: `scis`.
void read_scis(const Field& root, SiteConfig& config);

// site_schema.cc: what belongs to the other programs, within `scis` too.
void check_other_programs(const Field& root);
// The keys of an SCI and of an instance that are not the data plane's.
std::span<const std::string_view> other_keys_of_sci();
std::span<const std::string_view> other_keys_of_instance();

// site_checks.cc: all that concerns more than one value. Fills in the ports that forwarders name.
void check_site(const Field& root, SiteConfig& config);

// A key whose feature is not built: an error wherever it stands.
inline void refuse_not_built(const Field& field) {
  if (field.present()) field.fail_key("is not built yet, expected it left out");
}

// One of a table of words, some of which (those without a value) name features that are not built.
template <class Enum, size_t N>
bool read_built(const Field& field, const Word<std::optional<Enum>> (&words)[N], Enum& out) {
  std::optional<Enum> value;
  if (!read_enum(field, words, value)) return false;
  if (value) {
    out = *value;
    return true;
  }
  std::string built;
  for (const auto& word : words) {
    if (word.value) built += (built.empty() ? "" : " or ") + std::string(word.name);
  }
  field.fail(field.node()->text + " is not built yet, expected " + built);
  return false;
}

}  // namespace margay
