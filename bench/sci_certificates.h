// SPDX-License-Identifier: Apache-2.0
#pragma once

// Certificates of SCIs by the CA of a scripts/pki folder, in memory and by the thousand. All have one key.

#include <string>
#include <vector>

#include "common/result.h"
#include "control/security/names.h"
#include "control/security/openssl.h"

namespace margay::bench {

class SciCertificates {
 public:
  // Reads ca.pem and ca.key there. Errors: FILE: what.
  static Result<SciCertificates> open(const std::string& folder);

  std::string issue(const std::vector<security::Name>& names) const;  // PEM; good for a day
  const std::string& key() const { return key_pem_; }
  const std::string& ca() const { return ca_pem_; }

 private:
  std::string ca_pem_, key_pem_;
  security::X509Ptr ca_;
  security::KeyPtr ca_key_, key_;
};

}  // namespace margay::bench
