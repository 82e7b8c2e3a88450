// SPDX-License-Identifier: Apache-2.0
#pragma once

// margay-control's thread: waits for answers of instances, for the data plane, for what is due and for signals, and
// takes turns with the CLI's thread and the foreground shell by one mutex. SIGTERM and SIGINT end it, after the last
// reports; SIGHUP reads the site file again.

#include "common/result.h"
#include "control/options.h"
#include "control/site_reader.h"

namespace margay::control {

// Until `shutdown`, a signal, or the end of the foreground shell.
Result<void> run_control(SiteSpec spec, const Options& options);

}  // namespace margay::control
