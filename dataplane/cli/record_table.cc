// SPDX-License-Identifier: Apache-2.0
// record table {FILE|off}
#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

CommandResult record(DataPlane& plane, const Argument& file, Reply& reply) {
  if (!file.text().starts_with('/')) return file.error("\"" + file.text() + "\": expected an absolute path");
  if (auto done = plane.start_recording(file.text()); !done) return file.error(done.error().message);
  reply.field("recording", file.text(), "each change of the table goes into " + file.text());
  return {};
}

CommandResult stop(DataPlane& plane, Reply& reply) {
  const auto ended = plane.stop_recording();
  if (!ended) return Error{"nothing is recorded, expected a recording that `record table FILE` began"};
  if (!ended->fault.empty()) return Error{"the recording had ended by itself: " + ended->fault};
  reply.field("recorded", ended->path, ended->path + " is whole: `margay-dataplane replay --table` takes it");
  reply.field("lines", ended->lines);
  return {};
}

}  // namespace

void add_record_table(CommandTable& table, DataPlane& plane) {
  table.add({"record table FILE", "write the table, and each change of it, into a new file, for replay --table",
             "writes on the control thread; one line a change, at most 1 GiB",
             [&plane](const Arguments& arguments, Reply& reply) { return record(plane, arguments[0], reply); }});
  table.add({"record table off", "end the recording", "writes what is left, on the control thread",
             [&plane](const Arguments&, Reply& reply) { return stop(plane, reply); }});
}

}  // namespace margay::dp
