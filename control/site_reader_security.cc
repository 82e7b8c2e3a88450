// SPDX-License-Identifier: Apache-2.0
// `security` of the site file, for margay-control and margay-cps.

#include "common/sci_config.h"
#include "control/site_sections.h"
#include "control/site_values.h"

namespace margay::control {

void read_security(const Field& field, security::SecurityConfig& out) {
  if (!field.present()) return;
  for (const char* key : {"ca", "certificate", "key"}) require(field[key]);
  read_text(field["ca"], kPathBytesMax, out.ca);
  read_text(field["certificate"], kPathBytesMax, out.certificate);
  read_text(field["key"], kPathBytesMax, out.key);
  read_text(field["crl"], kPathBytesMax, out.crl);
  const Field signing = field["signing_key"];
  if (!signing.present()) return;
  security::SigningKeyFile& key = out.signing_key.emplace();
  if (require(signing["id"])) read_text(signing["id"], kIdBytesMax, key.id);
  if (require(signing["file"])) read_text(signing["file"], kPathBytesMax, key.file);
}

}  // namespace margay::control
