#include "agent/duty.h"

#include <algorithm>

#include "keeper/bytes.h"

namespace slipway::agent {
namespace {

using keeper::ByteReader;
using keeper::ByteWriter;

constexpr std::uint8_t format_version = 1;
constexpr std::uint32_t no_view = 0, has_view = 1;

View needed_afterwards(View view) {
  view.folders.clear();
  view.texts.clear();
  return view;
}

Result<void> write(ByteWriter& out, const View::Place& place, const GetSealer& get_sealer) {
  out.text(place.at);
  out.number(static_cast<std::uint8_t>(place.kind));
  out.text(place.source);
  out.text(place.command);
  std::string url, key;
  if (!place.url.empty()) {  // a SAS is a part of the address
    const Result<Sealer> sealer = get_sealer();
    if (!sealer) return fail(sealer.error());
    url = sealer->seal(place.url, place.at);
    key = sealer->seal(place.key, place.at);
  }
  out.text(url);
  out.text(key);
  out.number<std::uint8_t>(place.pulls);
  out.number<std::uint8_t>(place.read_only);
  return {};
}

Result<View::Place> read_place(ByteReader& in, const GetSealer& get_sealer) {
  View::Place place;
  place.at = in.text();
  place.kind = in.choice(MountKind::shared);
  place.source = in.text();
  place.command = in.text();
  const std::string url = in.text(), key = in.text();
  if (!url.empty()) {
    const Result<Sealer> sealer = get_sealer();
    if (!sealer) return fail(sealer.error());
    Result<std::string> opened = sealer->unseal(url, place.at);
    if (!opened) return fail(opened.error());
    place.url = std::move(*opened);
    opened = sealer->unseal(key, place.at);
    if (!opened) return fail(opened.error());
    place.key = std::move(*opened);
  }
  place.pulls = in.number<std::uint8_t>() != 0;
  place.read_only = in.number<std::uint8_t>() != 0;
  return place;
}

}  // namespace

Duty duty_of(const StartOrder& order, const std::string& data) {
  Duty duty;
  duty.folder = data + "/" + order.folder;
  if (!order.checkpoints.empty()) duty.checkpoints = data + "/" + order.checkpoints;
  duty.stall = order.stall_timeout;
  duty.lease = order.lease;
  if (!order.view.root.empty()) duty.view = needed_afterwards(order.view);
  for (const ProcessStart& process : order.processes)
    duty.processes.push_back({process.rank, process.stdout_name, process.stderr_name, process.listens});
  return duty;
}

Duty duty_of(const PrepareOrder& order, const std::string& data) {
  Duty duty;
  duty.folder = data + "/" + order.folder;
  duty.lease = order.lease;
  duty.view = needed_afterwards(order.view);
  return duty;
}

std::vector<const View::Place*> pushed_places(const Duty& duty) {
  std::vector<const View::Place*> places;
  for (const View::Place& place : duty.view.places)
    if (!place.url.empty() && !place.read_only) places.push_back(&place);
  return places;
}

bool has_mount_commands(const Duty& duty) {
  return std::any_of(duty.view.places.begin(), duty.view.places.end(),
                     [](const View::Place& place) { return place.kind == MountKind::command; });
}

Result<std::string> format(const Duty& duty, const GetSealer& sealer) {
  std::string content;
  ByteWriter out(content);
  out.number(format_version);
  out.text(duty.folder);
  out.text(duty.checkpoints);
  out.number(duty.stall.count());
  out.number(duty.lease.count());
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
  out.number(static_cast<std::uint32_t>(view.places.size()));
  for (const View::Place& place : view.places)
    if (auto written = write(out, place, sealer); !written) return fail(written.error());
  return content;
}

Result<Duty> parse_duty(std::string_view content, const GetSealer& sealer) {
  const auto malformed = [] { return fail(ErrorCode::invalid, "its record is malformed"); };
  ByteReader in(content);
  if (in.number<std::uint8_t>() != format_version)
    return fail(ErrorCode::invalid, "its record was written by another version");
  Duty duty;
  duty.folder = in.text();
  duty.checkpoints = in.text();
  duty.stall = Duration(in.number<Duration::rep>());
  duty.lease = Duration(in.number<Duration::rep>());
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
    duty.view.places.resize(in.count());
    for (View::Place& place : duty.view.places) {
      Result<View::Place> read = read_place(in, sealer);
      if (!read) return fail(read.error());
      place = std::move(*read);
    }
  }
  if (!in.is_done()) return malformed();
  return duty;
}

}  // namespace slipway::agent
