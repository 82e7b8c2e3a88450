// SPDX-License-Identifier: Apache-2.0
#include "control/agent/agent_state.h"

#include "control/record/c_sma_wire.h"
#include "margay/v1/c_sma_state.pb.h"

namespace margay::control {

std::string bytes_of(const c_sma::SavedState& state) {
  v1::CSmaState out;
  to_wire(state, out);
  return out.SerializeAsString();
}

Result<c_sma::SavedState> agent_state_of(const std::string& bytes) {
  v1::CSmaState in;
  if (!in.ParseFromString(bytes)) return Error{"is no margay.v1.CSmaState"};
  return saved_state_of(in);
}

}  // namespace margay::control
