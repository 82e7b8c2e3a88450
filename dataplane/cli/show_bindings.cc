// SPDX-License-Identifier: Apache-2.0
// show bindings
#include "dataplane/cli/commands.h"

namespace margay::dp {
namespace {

std::vector<std::string> columns() {
  std::vector<std::string> names{"file", "mib", "of_process", "of_generation", "refused", "adopted", "sessions"};
  for (size_t r = 0; r < kLeftOuts; ++r) names.emplace_back(name_of(static_cast<LeftOut>(r)));
  return names;
}

}  // namespace

void add_show_bindings(CommandTable& table, DataPlane& plane) {
  table.add({"show bindings", "the file of bindings, and what this process took over from it when it started",
             "reads what start left behind", [&plane](const Arguments&, Reply& reply) -> CommandResult {
               reply.table("bindings", columns());
               if (plane.bindings == nullptr) return {};
               const BindingsFile& file = *plane.bindings;
               const auto& [process, generation, adopted] = file.started();
               std::vector<Cell> cells{file.path(),    file.bytes() >> 20, process,         generation,
                                       file.refused(), adopted.bindings,   adopted.sessions};
               for (const uint64_t count : adopted.left_out) cells.emplace_back(count);
               reply.row(std::move(cells));
               return {};
             }});
}

}  // namespace margay::dp
