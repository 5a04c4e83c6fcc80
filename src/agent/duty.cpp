#include "agent/duty.h"

#include <algorithm>

#include "keeper/bytes.h"

namespace slipway::agent {
namespace {

using keeper::ByteReader;
using keeper::ByteWriter;

constexpr std::uint8_t format_version = 3, users_since = 2, wall_time_since = 3;
constexpr std::uint32_t no_view = 0, has_view = 1;

View needed_afterwards(View view) {
  view.folders.clear();
  view.files.clear();
  return view;
}

Result<void> write(ByteWriter& out, const View::Mount& mount, const GetSealer& get_sealer) {
  out.text(mount.at);
  out.number(static_cast<std::uint8_t>(mount.kind));
  out.text(mount.source);
  out.text(mount.command);
  std::string url, key;
  if (!mount.url.empty()) {  // a SAS is a part of the address
    const Result<Sealer> sealer = get_sealer();
    if (!sealer) return fail(sealer.error());
    url = sealer->seal(mount.url, mount.at);
    key = sealer->seal(mount.key, mount.at);
  }
  out.text(url);
  out.text(key);
  out.number<std::uint8_t>(mount.pulls);
  out.number<std::uint8_t>(mount.read_only);
  return {};
}

Result<View::Mount> read_mount(ByteReader& in, const GetSealer& get_sealer) {
  View::Mount mount;
  mount.at = in.text();
  mount.kind = in.choice(MountKind::shared);
  mount.source = in.text();
  mount.command = in.text();
  const std::string url = in.text(), key = in.text();
  if (!url.empty()) {
    const Result<Sealer> sealer = get_sealer();
    if (!sealer) return fail(sealer.error());
    Result<std::string> opened = sealer->unseal(url, mount.at);
    if (!opened) return fail(opened.error());
    mount.url = std::move(*opened);
    opened = sealer->unseal(key, mount.at);
    if (!opened) return fail(opened.error());
    mount.key = std::move(*opened);
  }
  mount.pulls = in.number<std::uint8_t>() != 0;
  mount.read_only = in.number<std::uint8_t>() != 0;
  return mount;
}

}  // namespace

Duty duty_of(const StartOrder& order, const std::string& data) {
  Duty duty;
  duty.folder = data + "/" + order.folder;
  if (!order.checkpoints.empty()) duty.checkpoints = data + "/" + order.checkpoints;
  duty.stall = order.stall_timeout;
  duty.lease = order.lease;
  duty.run_as = order.run_as;
  duty.wall_time_max = order.wall_time_max;
  duty.stop_grace = order.stop_grace;
  if (!order.view.root.empty()) duty.view = needed_afterwards(order.view);
  for (const ProcessStart& process : order.processes)
    duty.processes.push_back({process.rank, process.stdout_name, process.stderr_name, process.listens});
  return duty;
}

Duty duty_of(const PrepareOrder& order, const std::string& data) {
  Duty duty;
  duty.folder = data + "/" + order.folder;
  duty.lease = order.lease;
  duty.run_as = order.run_as;
  duty.view = needed_afterwards(order.view);
  return duty;
}

std::vector<const View::Mount*> pushed_mounts(const Duty& duty) {
  std::vector<const View::Mount*> mounts;
  for (const View::Mount& mount : duty.view.mounts)
    if (!mount.url.empty() && !mount.read_only) mounts.push_back(&mount);
  return mounts;
}

bool has_mount_commands(const Duty& duty) {
  return std::any_of(duty.view.mounts.begin(), duty.view.mounts.end(),
                     [](const View::Mount& mount) { return mount.kind == MountKind::command; });
}

Result<std::string> format(const Duty& duty, const GetSealer& sealer) {
  std::string content;
  ByteWriter out(content);
  out.number(format_version);
  out.text(duty.folder);
  out.text(duty.checkpoints);
  out.number(duty.stall.count());
  out.number(duty.lease.count());
  const RunAs user = duty.run_as.value_or(RunAs{});  // 0: nobody else, no user of jobs is root
  out.number(user.uid);
  out.number(user.gid);
  out.number(duty.wall_time_max.count());
  out.number(duty.stop_grace.count());
  out.number(static_cast<std::uint32_t>(duty.processes.size()));
  for (const Duty::Process& process : duty.processes) {
    out.number(process.rank);
    out.text(process.stdout_name);
    out.text(process.stderr_name);
    out.number(static_cast<std::uint32_t>(process.listens.size()));
    for (const std::uint16_t port : process.listens) out.number(port);
  }
  const View& view = duty.view;
  out.number(view.root.empty() ? no_view : has_view);
  if (view.root.empty()) return content;
  out.text(view.root);
  out.text(view.tree);
  out.text(view.logs);
  out.text(view.journal);
  out.number(static_cast<std::uint32_t>(view.mounts.size()));
  for (const View::Mount& mount : view.mounts)
    if (auto written = write(out, mount, sealer); !written) return fail(written.error());
  return content;
}

Result<Duty> parse_duty(std::string_view content, const GetSealer& sealer) {
  const auto malformed = [] { return fail(ErrorCode::invalid, "its record is malformed"); };
  ByteReader in(content);
  const auto version = in.number<std::uint8_t>();
  if (version < 1 || version > format_version)
    return fail(ErrorCode::invalid, "its record was written by another version");
  Duty duty;
  duty.folder = in.text();
  duty.checkpoints = in.text();
  duty.stall = Duration(in.number<Duration::rep>());
  duty.lease = Duration(in.number<Duration::rep>());
  if (version >= users_since) {
    RunAs user;
    user.uid = in.number<std::uint32_t>();
    user.gid = in.number<std::uint32_t>();
    if (user.uid != 0) duty.run_as = user;
  }
  if (version >= wall_time_since) {
    duty.wall_time_max = Duration(in.number<Duration::rep>());
    duty.stop_grace = Duration(in.number<Duration::rep>());
  }
  duty.processes.resize(in.count());
  for (Duty::Process& process : duty.processes) {
    process.rank = in.number<std::uint32_t>();
    process.stdout_name = in.text();
    process.stderr_name = in.text();
    process.listens.resize(in.count());
    for (std::uint16_t& port : process.listens) port = in.number<std::uint16_t>();
  }
  const auto view_kind = in.number<std::uint32_t>();
  if (!in.is_ok() || view_kind > has_view) return malformed();
  if (view_kind == has_view) {
    duty.view.root = in.text();
    duty.view.tree = in.text();
    duty.view.logs = in.text();
    duty.view.journal = in.text();
    duty.view.mounts.resize(in.count());
    for (View::Mount& mount : duty.view.mounts) {
      Result<View::Mount> read = read_mount(in, sealer);
      if (!read) return fail(read.error());
      mount = std::move(*read);
    }
  }
  if (!in.is_done()) return malformed();
  return duty;
}

}  // namespace slipway::agent
