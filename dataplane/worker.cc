// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker.h"

#include "common/rcu.h"
#include "dataplane/dpdk/port_io.h"

namespace margay::dp {

template class Worker<PortIo, UrcuQsbr>;

}  // namespace margay::dp
