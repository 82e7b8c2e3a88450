// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sections of the site file that are the control plane's, one file each. All report to the FieldErrors behind
// `field`. REQUIRES: the common reader has passed it.

#include <vector>

#include "common/sci_config.h"
#include "common/yaml_fields.h"
#include "control/c_sma_spec.h"
#include "control/sci/config.h"
#include "control/security/config.h"

namespace margay::control {

// site_reader_sci.cc: an entry of `scis`.
void read_sci(const Field& field, SciSpec& spec);

// site_reader_c_sma.cc: `c_sma`, an entry's `reports_to`, and `control.pulled_by`. `security`: that section, which must
// be there for TLS. `scis`: those of the file, which need no entry in `accept`.
void read_c_sma(const Field& field, const Field& security, const std::vector<SciConfig>& scis, CSmaSpec& out);
void read_reports_to(const Field& field, const Field& security, ReportsTo& out);
void read_pulled_by(const Field& field, const Field& security, PulledBy& out);

// site_reader_security.cc: `security`.
void read_security(const Field& field, security::SecurityConfig& out);

}  // namespace margay::control
