// SPDX-License-Identifier: Apache-2.0
#include "common/site/site_config.h"

namespace margay {

std::string_view word_of(Idle v) {
  switch (v) {
    case Idle::kSpin:
      return "spin";
    case Idle::kSleep:
      return "sleep";
  }
  return "?";
}

}  // namespace margay
