// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sections of an SCI in the site file that are its control plane's (control/site_reader_sci.cc). Reports to the
// FieldErrors behind `field`.

#include "common/yaml_fields.h"
#include "control/sci/config.h"

namespace margay::control {

// REQUIRES: `field` has passed the common reader
void read_sci(const Field& field, SciSpec& spec);

}  // namespace margay::control
