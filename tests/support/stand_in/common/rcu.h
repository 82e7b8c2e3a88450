// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes the place of common/rcu.h where this folder comes before the source folder in the search for includes: what is
// compiled so uses the stand-in under liburcu's name.

#include "tests/support/rcu_stand_in.h"

namespace margay {

using UrcuQsbr = test::RcuStandIn;

}  // namespace margay
