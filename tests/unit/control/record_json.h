// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "control/record/wire.h"
#include "margay/v1/sci_events.pb.h"

namespace margay::test {

// As it is read again from its line.
inline v1::Record through_json(const v1::Record& record) {
  v1::Record read;
  const auto status = google::protobuf::util::JsonStringToMessage(control::json_line(record), &read);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << control::json_line(record);
  return read;
}

}  // namespace margay::test
