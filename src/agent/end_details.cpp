#include "agent/end_details.h"

#include <fmt/format.h>

#include "agent/machine.h"
#include "agent/ports.h"

namespace slipway::agent {

void EndDetails::started(const StartOrder& order, const keeper::StartRequest& request) {
  for (std::size_t i = 0; i < request.processes.size(); ++i)
    started_[{request.key, request.processes[i].rank}] = {request.processes[i].stderr_file,
                                                          order.processes[i].listens, order.checkpoints};
}

void EndDetails::complete(ProcessEnded& ended, const std::string& data) {
  const auto found = started_.extract({ended.key, ended.rank});
  if (!found) return;
  if (ended.kind == ProcessEndKind::exited && ended.code == 0) return;
  const Started& process = found.mapped();
  if (!process.checkpoints.empty()) ended.marked_at = newest_change(data + "/" + process.checkpoints);
  if (ended.kind != ProcessEndKind::exited && ended.kind != ProcessEndKind::signalled) return;
  ended.last_lines = last_lines_of(process.stderr_file);
  for (const std::uint16_t port : process.listens) {
    if (ended.kind != ProcessEndKind::exited || !is_listened_on(port)) continue;
    ended.kind = ProcessEndKind::start_failed;
    ended.counts_against_retries = false;
    ended.detail =
        fmt::format("port {}, found for it, was taken by another program before it could listen", port);
  }
}

}  // namespace slipway::agent
