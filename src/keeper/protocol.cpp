#include "keeper/protocol.h"

#include <utility>

namespace slipway::keeper {
namespace {

enum class Kind : std::uint8_t {
  ask_list = 1,
  // 2 was a start whose processes were all alike
  stop = 3,
  forget = 4,
  quit = 5,
  start = 6,
  start_limited = 7,  // the same, and its processes are held to their cores
  start_leased = 8,   // either, under a lease
  renew = 9,
  duty = 10,
  start_with_duties = 11,  // any of the starts
  start_bounded = 12,      // any of them, with another number of processes than usual
  start_without_core = 13,
  // 64 was a list that did not say how cores are enforced, 67 one without duties; keepers of before send them
  list_of_before = 64,
  started = 65,
  ended = 66,
  list_without_duties = 67,
  list = 68,
};

void write(ByteWriter& out, const std::vector<std::string>& texts) {
  out.number(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> read_texts(ByteReader& in) {
  std::vector<std::string> texts(in.count());
  for (std::string& text : texts) text = in.text();
  return texts;
}

void write(ByteWriter& out, TimePoint time) { out.number(time.time_since_epoch().count()); }
TimePoint read_time(ByteReader& in) { return TimePoint(Duration(in.number<Duration::rep>())); }

void write(ByteWriter& out, const Resources& resources) {
  out.number(resources.cores);
  out.number(resources.memory);
  out.number(resources.gpus);
}
Resources read_resources(ByteReader& in) {
  Resources resources;
  resources.cores = in.number<Millicores>();
  resources.memory = in.number<Bytes>();
  resources.gpus = in.number<std::uint32_t>();
  return resources;
}

void write(ByteWriter& out, const ProcessStarted& start) {
  keeper::write(out, start.key);
  out.number(start.rank);
  out.number(start.pid);
  write(out, start.time);
}
ProcessStarted read_started(ByteReader& in) {
  ProcessStarted start;
  start.key = read_key(in);
  start.rank = in.number<std::uint32_t>();
  start.pid = in.number<std::int64_t>();
  start.time = read_time(in);
  return start;
}

void write(ByteWriter& out, const ProcessSpec& process) {
  out.number(process.rank);
  write(out, process.argv);
  write(out, process.environment);
  write(out, process.folders);
  out.text(process.stdout_file);
  out.text(process.stderr_file);
  out.text(process.working_folder);
  out.number<std::uint8_t>(process.own_working_folder);
  write(out, process.resources);
}
ProcessSpec read_process(ByteReader& in) {
  ProcessSpec process;
  process.rank = in.number<std::uint32_t>();
  process.argv = read_texts(in);
  process.environment = read_texts(in);
  process.folders = read_texts(in);
  process.stdout_file = in.text();
  process.stderr_file = in.text();
  process.working_folder = in.text();
  process.own_working_folder = in.number<std::uint8_t>() != 0;
  process.resources = read_resources(in);
  return process;
}

Kind write_content(ByteWriter&, const ListRequest&) { return Kind::ask_list; }
Kind write_content(ByteWriter&, const QuitRequest&) { return Kind::quit; }
Kind write_content(ByteWriter& out, const RenewRequest& renew) {
  out.number(renew.from.count());
  return Kind::renew;
}
Kind write_content(ByteWriter& out, const StartRequest& start) {
  keeper::write(out, start.key);
  out.number(start.stop_grace.count());
  out.number<std::uint8_t>(start.prefetched);
  write(out, start.total);
  out.number(static_cast<std::uint32_t>(start.processes.size()));
  for (const ProcessSpec& process : start.processes) write(out, process);
  if (!start.allows_core) {
    out.number<std::uint8_t>(start.cpu_limit);
    out.number(start.lease.count());
    out.text(start.duties);
    out.number(start.pids);
    return Kind::start_without_core;
  }
  if (start.pids != pids_usual) {
    out.number<std::uint8_t>(start.cpu_limit);
    out.number(start.lease.count());
    out.text(start.duties);
    out.number(start.pids);
    return Kind::start_bounded;
  }
  if (!start.duties.empty()) {
    out.number<std::uint8_t>(start.cpu_limit);
    out.number(start.lease.count());
    out.text(start.duties);
    return Kind::start_with_duties;
  }
  if (start.lease > Duration(0)) {
    out.number<std::uint8_t>(start.cpu_limit);
    out.number(start.lease.count());
    return Kind::start_leased;
  }
  return start.cpu_limit ? Kind::start_limited : Kind::start;
}
Kind write_content(ByteWriter& out, const StopRequest& stop) {
  keeper::write(out, stop.key);
  out.number(stop.grace.count());
  return Kind::stop;
}
Kind write_content(ByteWriter& out, const DutyRecord& record) {
  keeper::write(out, record);
  return Kind::duty;
}
Kind write_content(ByteWriter& out, const ForgetRequest& forget) {
  out.number(static_cast<std::uint32_t>(forget.keys.size()));
  for (const WorkKey& key : forget.keys) keeper::write(out, key);
  return Kind::forget;
}
Kind write_content(ByteWriter& out, const ProcessList& list) {
  out.text(SLIPWAY_VERSION);
  write(out, list.notes);
  out.number(static_cast<std::uint32_t>(list.running.size()));
  for (const RunningProcess& kept : list.running) {
    write(out, kept.started);
    write(out, kept.resources);
  }
  out.number(static_cast<std::uint32_t>(list.ended.size()));
  for (const ProcessEnded& end : list.ended) keeper::write(out, end);
  out.number(static_cast<std::uint32_t>(list.waiting.size()));
  for (const WaitingAttempt& waiting : list.waiting) {
    keeper::write(out, waiting.key);
    out.number(static_cast<std::uint32_t>(waiting.ranks.size()));
    for (const std::uint32_t rank : waiting.ranks) out.number(rank);
  }
  out.text(list.cpu_limit);
  out.text(list.cpu_limit_reason);
  out.number<std::uint8_t>(list.keeps_duties);
  out.number(static_cast<std::uint32_t>(list.duties.size()));
  for (const DutyRecord& record : list.duties) keeper::write(out, record);
  return Kind::list;
}
Kind write_content(ByteWriter& out, const ProcessStarted& start) {
  write(out, start);
  return Kind::started;
}
Kind write_content(ByteWriter& out, const ProcessEnded& end) {
  keeper::write(out, end);
  return Kind::ended;
}

template <class Message>
void append(std::string& out, const Message& message) {
  const std::size_t begin = out.size();
  out.append(sizeof(std::uint32_t) + 1, '\0');  // filled in below
  ByteWriter content(out);
  const Kind kind = std::visit([&](const auto& one) { return write_content(content, one); }, message);
  const auto size = static_cast<std::uint32_t>(out.size() - begin - sizeof(std::uint32_t));
  std::memcpy(out.data() + begin, &size, sizeof size);
  out[begin + sizeof size] = static_cast<char>(kind);
}

StartRequest read_start(ByteReader& in) {
  StartRequest start;
  start.key = read_key(in);
  start.stop_grace = Duration(in.number<Duration::rep>());
  start.prefetched = in.number<std::uint8_t>() != 0;
  start.total = read_resources(in);
  start.processes.resize(in.count());
  for (ProcessSpec& process : start.processes) process = read_process(in);
  return start;
}

ProcessList read_list(ByteReader& in) {
  ProcessList list;
  in.text();  // the keeper's version: every version so far says the rest alike
  list.notes = read_texts(in);
  list.running.resize(in.count());
  for (RunningProcess& kept : list.running) {
    kept.started = read_started(in);
    kept.resources = read_resources(in);
  }
  list.ended.resize(in.count());
  for (ProcessEnded& end : list.ended) end = read_ended(in);
  list.waiting.resize(in.count());
  for (WaitingAttempt& waiting : list.waiting) {
    waiting.key = read_key(in);
    waiting.ranks.resize(in.count());
    for (std::uint32_t& rank : waiting.ranks) rank = in.number<std::uint32_t>();
  }
  return list;
}

template <class Message>
Result<Message> checked(Message message, const ByteReader& in) {
  if (!in.is_done()) return fail(ErrorCode::invalid, "a frame between agent and keeper is malformed");
  return message;
}

}  // namespace

void write(ByteWriter& out, const WorkKey& key) {
  const AttemptKey packed = pack(key);
  out.number(packed.task.job.value());
  out.number(packed.task.group);
  out.number(packed.task.index);
  out.number(packed.attempt);
}

WorkKey read_key(ByteReader& in) {
  AttemptKey packed;
  packed.task.job = JobId(in.number<std::uint64_t>());
  packed.task.group = in.number<std::uint32_t>();
  packed.task.index = in.number<std::uint32_t>();
  packed.attempt = in.number<std::uint32_t>();
  return unpack(packed);
}

void write(ByteWriter& out, const ProcessEnded& end) {
  write(out, end.key);
  out.number(end.rank);
  out.number(static_cast<std::uint8_t>(end.kind));
  out.number<std::int32_t>(end.code);
  out.number<std::uint8_t>(end.counts_against_retries);
  out.text(end.detail);
  out.number(end.use.memory_peak);
  out.number(end.use.cpu_time.count());
  write(out, end.started_at);
  write(out, end.ended_at);
}

ProcessEnded read_ended(ByteReader& in) {
  ProcessEnded end;
  end.key = read_key(in);
  end.rank = in.number<std::uint32_t>();
  end.kind = in.choice(ProcessEndKind::not_started);
  end.code = in.number<std::int32_t>();
  end.counts_against_retries = in.number<std::uint8_t>() != 0;
  end.detail = in.text();
  end.use.memory_peak = in.number<Bytes>();
  end.use.cpu_time = Duration(in.number<Duration::rep>());
  end.started_at = read_time(in);
  end.ended_at = read_time(in);
  return end;
}

void write(ByteWriter& out, const DutyRecord& record) {
  write(out, record.key);
  out.number(record.part);
  out.text(record.content);
}

DutyRecord read_duty(ByteReader& in) {
  DutyRecord record;
  record.key = read_key(in);
  record.part = in.number<std::uint32_t>();
  record.content = in.text();
  return record;
}

void append_frame(std::string& out, const ToKeeper& message) { append(out, message); }
void append_frame(std::string& out, const FromKeeper& message) { append(out, message); }

Result<std::optional<std::string_view>> take_frame(std::string_view& bytes) {
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size == 0 || size > frame_size_max)
    return fail(ErrorCode::invalid, "a frame between agent and keeper has an impossible size");
  if (bytes.size() - sizeof size < size) return std::nullopt;
  const std::string_view frame = bytes.substr(sizeof size, size);
  bytes.remove_prefix(sizeof size + size);
  return frame;
}

Result<ToKeeper> parse_to_keeper(std::string_view frame) {
  ByteReader in(frame);
  switch (static_cast<Kind>(in.number<std::uint8_t>())) {
    case Kind::ask_list: return checked<ToKeeper>(ListRequest{}, in);
    case Kind::quit: return checked<ToKeeper>(QuitRequest{}, in);
    case Kind::start: {
      ToKeeper message = read_start(in);
      return checked(std::move(message), in);
    }
    case Kind::start_limited: {
      StartRequest start = read_start(in);
      start.cpu_limit = true;
      return checked<ToKeeper>(std::move(start), in);
    }
    case Kind::start_leased: {
      StartRequest start = read_start(in);
      start.cpu_limit = in.number<std::uint8_t>() != 0;
      start.lease = Duration(in.number<Duration::rep>());
      return checked<ToKeeper>(std::move(start), in);
    }
    case Kind::start_with_duties:
    case Kind::start_bounded:
    case Kind::start_without_core: {
      const Kind kind = static_cast<Kind>(frame.front());
      StartRequest start = read_start(in);
      start.cpu_limit = in.number<std::uint8_t>() != 0;
      start.lease = Duration(in.number<Duration::rep>());
      start.duties = in.text();
      if (kind != Kind::start_with_duties) start.pids = in.number<std::uint32_t>();
      start.allows_core = kind != Kind::start_without_core;
      return checked<ToKeeper>(std::move(start), in);
    }
    case Kind::duty: {
      ToKeeper message = read_duty(in);
      return checked(std::move(message), in);
    }
    case Kind::renew: return checked<ToKeeper>(RenewRequest{Duration(in.number<Duration::rep>())}, in);
    case Kind::stop: {
      StopRequest stop;
      stop.key = read_key(in);
      stop.grace = Duration(in.number<Duration::rep>());
      return checked<ToKeeper>(stop, in);
    }
    case Kind::forget: {
      ForgetRequest forget;
      forget.keys.resize(in.count());
      for (WorkKey& key : forget.keys) key = read_key(in);
      return checked<ToKeeper>(std::move(forget), in);
    }
    default: return fail(ErrorCode::invalid, "an agent sent its keeper something of an unknown kind");
  }
}

Result<FromKeeper> parse_from_keeper(std::string_view frame) {
  ByteReader in(frame);
  switch (static_cast<Kind>(in.number<std::uint8_t>())) {
    case Kind::list_of_before: {
      FromKeeper message = read_list(in);
      return checked(std::move(message), in);
    }
    case Kind::list_without_duties: {
      ProcessList list = read_list(in);
      list.cpu_limit = in.text();
      list.cpu_limit_reason = in.text();
      return checked<FromKeeper>(std::move(list), in);
    }
    case Kind::list: {
      ProcessList list = read_list(in);
      list.cpu_limit = in.text();
      list.cpu_limit_reason = in.text();
      list.keeps_duties = in.number<std::uint8_t>() != 0;
      list.duties.resize(in.count());
      for (DutyRecord& record : list.duties) record = read_duty(in);
      return checked<FromKeeper>(std::move(list), in);
    }
    case Kind::started: {
      FromKeeper message = read_started(in);
      return checked(std::move(message), in);
    }
    case Kind::ended: {
      FromKeeper message = read_ended(in);
      return checked(std::move(message), in);
    }
    default: return fail(ErrorCode::invalid, "a keeper sent its agent something of an unknown kind");
  }
}

}  // namespace slipway::keeper
