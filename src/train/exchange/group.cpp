#include "train/exchange/group.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/random.h"
#include "train/exchange/acceptor.h"
#include "train/exchange/connection.h"
#include "train/exchange/frame.h"

namespace slipway::train {
namespace {

constexpr std::size_t text_max = 1 << 20;

// Ranks that see the same kernel and the same processes can open each other's memory.
std::string this_machine() {
  std::string boot = read_file("/proc/sys/kernel/random/boot_id").value_or("unknown");
  std::erase(boot, '\n');
  std::error_code ignored;  // without the link the boot id has to do
  return boot + "/" + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

template <class T>
bool number(const std::string& text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Result<void> send_text(Connection& connection, FrameKind kind, std::uint32_t sender, std::string_view text,
                       const std::string& peer, const WaitLimit& wait_limit) {
  auto header = format_frame({.kind = kind, .sender = sender, .bytes = text.size()});
  iovec parts[2] = {{header.data(), header.size()}, {const_cast<char*>(text.data()), text.size()}};
  return send_all(connection, parts, peer, wait_limit);
}

Result<std::string> receive_text(Connection& connection, FrameKind kind, const std::string& peer,
                                 const WaitLimit& wait_limit) {
  std::array<std::uint8_t, frame_bytes> header{};
  if (auto got = receive_all(connection, header.data(), header.size(), peer, wait_limit); !got)
    return fail(got.error());
  const auto frame = parse_frame(header);
  if (!frame) return fail(frame.error().code, peer + ": " + frame.error().what, frame.error().hint);
  if (frame->bytes > text_max)
    return fail(ErrorCode::too_large, fmt::format("{} announced {} bytes", peer, frame->bytes));
  std::string text(static_cast<std::size_t>(frame->bytes), '\0');
  if (auto got = receive_all(connection, text.data(), text.size(), peer, wait_limit); !got)
    return fail(got.error());
  if (frame->kind == FrameKind::refuse) return fail(refused_by(peer, text));
  if (frame->kind != kind) return fail(ErrorCode::invalid, peer + " sent something else than was due");
  return text;
}

std::string rank_name(std::uint32_t rank) { return fmt::format("rank {}", rank); }

// Whether a rank is of the run that `own` is rank 0 of.
Result<Introduction> check_rank(const Introduction& own, const Introduction& came) {
  if (came.ranks == own.ranks && came.layout == own.layout && came.floats == own.floats && came.rank != 0)
    return came;
  return fail(ErrorCode::conflict,
              fmt::format("it is rank {} of {} with model {:016x}, this is a run of {} with {:016x}",
                          came.rank, came.ranks, came.layout, own.ranks, own.layout),
              "start every rank with the same options");
}

}  // namespace

std::string format_introduction(const Introduction& i) {
  return fmt::format("{} {} {} {} {} {} {}", i.rank, i.ranks, i.layout, i.floats, i.step, i.port, i.machine);
}

Result<Introduction> parse_introduction(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  Introduction i;
  if (words.size() != 7 || !number(words[0], i.rank) || !number(words[1], i.ranks) ||
      !number(words[2], i.layout) || !number(words[3], i.floats) || !number(words[4], i.step) ||
      !number(words[5], i.port) || i.rank >= i.ranks)
    return fail(ErrorCode::invalid, "its introduction makes no sense");
  i.machine = words[6];
  return i;
}

std::uint32_t GroupTable::machines() const {
  std::uint32_t count = 0;
  for (const Member& member : members) count = std::max(count, member.machine + 1);
  return count;
}

std::vector<std::uint32_t> GroupTable::ranks_of(std::uint32_t machine) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < members.size(); ++rank)
    if (members[rank].machine == machine) ranks.push_back(rank);
  return ranks;
}

std::string format_table(const GroupTable& table) {
  std::string text = fmt::format("{} {} {}", table.session, table.source, table.step);
  for (const GroupTable::Member& member : table.members)
    text += fmt::format(" {} {} {}", member.machine, member.local, to_string(member.address));
  return text;
}

Result<GroupTable> parse_table(std::string_view text) {
  const auto wrong = [] { return fail(ErrorCode::invalid, "rank 0 sent a table that makes no sense"); };
  const std::vector<std::string> words = words_of(text);
  GroupTable table;
  if (words.size() < 6 || words.size() % 3 != 0 || !number(words[1], table.source) ||
      !number(words[2], table.step))
    return wrong();
  table.session = words[0];
  for (std::size_t i = 3; i < words.size(); i += 3) {
    GroupTable::Member member;
    auto address = parse_address(words[i + 2]);
    if (!number(words[i], member.machine) || !number(words[i + 1], member.local) || !address ||
        member.machine >= words.size() || member.local >= words.size())
      return wrong();
    member.address = std::move(*address);
    table.members.push_back(std::move(member));
  }
  if (table.source >= table.members.size()) return wrong();
  return table;
}

GroupTable make_table(const std::vector<Introduction>& introductions, const std::vector<std::string>& hosts,
                      std::string session) {
  GroupTable table;
  table.session = std::move(session);
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> machines;  // number, ranks so far
  for (std::size_t i = 0; i < introductions.size(); ++i) {
    const Introduction& who = introductions[i];
    auto& [machine, ranks] =
        machines.try_emplace(who.machine, static_cast<std::uint32_t>(machines.size()), 0U).first->second;
    table.members.push_back({machine, ranks++, {hosts[i], who.port}});
    if (who.step > introductions[table.source].step) table.source = who.rank;
  }
  table.step = introductions[table.source].step;
  return table;
}

Result<std::unique_ptr<Rendezvous>> Rendezvous::open(const AllReduceOptions& options) {
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(options));
  if (options.rank == 0 && options.ranks > 1) {
    auto listener = listen_on(options.master);
    if (!listener) return fail(listener.error());
    rendezvous->master_ = std::move(*listener);
  }
  return rendezvous;
}

// Rank 0: a hello from every other rank. One that comes twice was started again; the last counts.
Result<void> Rendezvous::gather(const Introduction& own, std::vector<Introduction>& all,
                                std::vector<std::string>& hosts, const WaitLimit& wait_limit) {
  const Steady::time_point deadline = Steady::now() + wait_limit.timeout;
  Acceptor acceptor(master_.get(), options_.key);
  std::uint32_t missing = options_.ranks - 1;
  while (missing > 0) {
    std::string waiting;
    for (std::uint32_t rank = 1; rank < options_.ranks; ++rank)
      if (!controls_[rank]) waiting += (waiting.empty() ? "" : ", ") + rank_name(rank);
    auto peers = acceptor.next(waiting, {deadline - Steady::now(), wait_limit.stop});
    if (!peers) return fail(peers.error());
    for (ServerConnection& peer : *peers) {
      const auto came =
          parse_introduction(peer.text()).and_then([&](const Introduction& i) { return check_rank(own, i); });
      if (!came) {
        log::warning("exchange.peer_refused", {{"peer", peer.name()}, {"why", came.error().what}});
        peer.refuse(came.error());
        continue;
      }
      if (!controls_[came->rank]) --missing;
      hosts[came->rank] = remote_host(peer.fd()).value_or("unknown");
      controls_[came->rank] = peer.release();
      all[came->rank] = *came;
    }
  }
  return {};
}

Result<std::unique_ptr<Group>> Rendezvous::form_once(std::uint64_t step, const WaitLimit& wait_limit) {
  const std::uint32_t me = options_.rank, ranks = options_.ranks;
  controls_.clear();
  controls_.resize(ranks);
  if (me != 0) {
    auto fd = connect_to(options_.master, "rank 0", wait_limit);
    if (!fd) return fail(fd.error());
    controls_[0] = Connection(std::move(*fd));
    if (auto known = authenticate(controls_[0], options_.key, "rank 0", wait_limit); !known)
      return fail(known.error());
  }
  if (!data_ && ranks > 1) {
    auto listener = listen_on({"", 0});
    if (!listener) return fail(listener.error());
    data_ = std::move(*listener);
  }
  Introduction own{me, ranks, options_.layout, options_.floats, step, options_.machine, 0};
  if (own.machine.empty()) own.machine = this_machine();
  if (!options_.shared_memory) own.machine += fmt::format("/rank{}", me);
  if (data_) {
    const auto port = local_port(data_.get());
    if (!port) return fail(port.error());
    own.port = *port;
  }

  std::unique_ptr<Group> group(new Group());
  group->rank_ = me;
  if (me == 0) {
    std::vector<Introduction> all(ranks);
    std::vector<std::string> hosts(ranks, options_.master.host);
    all[0] = own;
    if (auto gathered = gather(own, all, hosts, wait_limit); !gathered) return fail(gathered.error());
    group->table_ = make_table(all, hosts, random_hex(8));
    for (std::uint32_t rank = 1; rank < ranks; ++rank)
      if (auto sent = send_text(controls_[rank], FrameKind::table, 0, format_table(group->table_),
                                rank_name(rank), wait_limit);
          !sent)
        return fail(sent.error());
  } else {
    if (auto sent =
            send_text(controls_[0], FrameKind::hello, me, format_introduction(own), "rank 0", wait_limit);
        !sent)
      return fail(sent.error());
    const auto table = receive_text(controls_[0], FrameKind::table, "rank 0", wait_limit)
                           .and_then([](const std::string& text) { return parse_table(text); });
    if (!table) return fail(table.error());
    group->table_ = *table;
    if (me >= table->members.size()) return fail(ErrorCode::invalid, "rank 0 sent a table without this rank");
  }

  const GroupTable::Member& here = group->table_.members[me];
  const std::vector<std::uint32_t> neighbours = group->table_.ranks_of(here.machine);
  SharedMemory::Layout layout{
      here.local, static_cast<std::uint32_t>(neighbours.size()), tail_floats + options_.floats, {}};
  for (const std::uint32_t rank : neighbours) layout.names.push_back(rank_name(rank));
  const WaitLimit usual = options_.wait_limit;
  SharedMemory::Ticket ticket;
  if (layout.ranks > 1 && here.local == 0) {
    auto memory = SharedMemory::create(layout, usual, ticket);
    if (!memory) return fail(memory.error());
    group->memory_ = std::move(*memory);
  }

  // Tickets go through rank 0: "pid fd" per rank; only those of first ranks mean anything.
  std::vector<std::string> tickets(ranks, "0 0");
  const std::string own_ticket = fmt::format("{} {}", ticket.pid, ticket.fd);
  if (me == 0) {
    tickets[0] = own_ticket;
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      auto text = receive_text(controls_[rank], FrameKind::ready, rank_name(rank), wait_limit);
      if (!text) return fail(text.error());
      tickets[rank] = *text;
    }
    std::string joined;
    for (const std::string& text : tickets) joined += text + " ";
    for (std::uint32_t rank = 1; rank < ranks; ++rank)
      if (auto sent = send_text(controls_[rank], FrameKind::ready, 0, joined, rank_name(rank), wait_limit);
          !sent)
        return fail(sent.error());
  } else {
    if (auto sent = send_text(controls_[0], FrameKind::ready, me, own_ticket, "rank 0", wait_limit); !sent)
      return fail(sent.error());
    const auto text = receive_text(controls_[0], FrameKind::ready, "rank 0", wait_limit);
    if (!text) return fail(text.error());
    const std::vector<std::string> words = words_of(*text);
    const std::size_t at = neighbours[0] * 2;
    if (at + 1 >= words.size() || !number(words[at], ticket.pid) || !number(words[at + 1], ticket.fd))
      return fail(ErrorCode::invalid, "rank 0 sent tickets that make no sense");
  }
  if (layout.ranks > 1 && here.local != 0) {
    auto memory = SharedMemory::open(layout, usual, ticket);
    if (!memory) return fail(memory.error());
    group->memory_ = std::move(*memory);
  }
  if (!group->memory_) group->alone_.resize(tail_floats + options_.floats);
  if (group->table_.machines() > 1 && here.local == 0)
    if (auto connected = connect_machines(*group, wait_limit); !connected) return fail(connected.error());
  return group;
}

// The first ranks of all machines, each with each: the later one connects.
Result<void> Rendezvous::connect_machines(Group& group, const WaitLimit& wait_limit) {
  const GroupTable& table = group.table_;
  Peers& peers = group.peers_;
  peers.rank = table.members[options_.rank].machine;
  peers.sockets.resize(table.machines());
  peers.wait_limit = options_.wait_limit;
  for (std::uint32_t machine = 0; machine < table.machines(); ++machine)
    peers.names.push_back(rank_name(table.ranks_of(machine)[0]));
  for (std::uint32_t machine = 0; machine < peers.rank; ++machine) {
    const Address& address = table.members[table.ranks_of(machine)[0]].address;
    auto fd = connect_to(address, peers.names[machine], wait_limit);
    if (!fd) return fail(fd.error());
    Connection& peer = peers.sockets[machine] = Connection(std::move(*fd));
    if (auto known = authenticate(peer, options_.key, peers.names[machine], wait_limit); !known) return known;
    if (auto sent =
            send_text(peer, FrameKind::hello, peers.rank, table.session, peers.names[machine], wait_limit);
        !sent)
      return sent;
  }
  const Steady::time_point deadline = Steady::now() + wait_limit.timeout;
  Acceptor acceptor(data_.get(), options_.key);
  for (std::uint32_t missing = table.machines() - peers.rank - 1; missing > 0;) {
    auto came = acceptor.next("another machine's rank", {deadline - Steady::now(), wait_limit.stop});
    if (!came) return fail(came.error());
    for (ServerConnection& peer : *came) {
      const std::uint32_t machine = peer.frame().sender;
      // Left over from an earlier rendezvous, or a stranger.
      if (peer.text() != table.session || machine <= peers.rank || machine >= table.machines()) continue;
      if (!peers.sockets[machine]) --missing;
      peers.sockets[machine] = peer.release();
    }
  }
  return {};
}

Result<std::unique_ptr<Group>> Rendezvous::form(std::uint64_t step) {
  const Steady::time_point deadline = Steady::now() + options_.wait_limit.timeout;
  for (;;) {
    const WaitLimit left{std::max<Steady::duration>(deadline - Steady::now(), std::chrono::milliseconds(1)),
                         options_.wait_limit.stop};
    auto group = form_once(step, left);
    if (group) return group;
    // A rank that died while we were meeting: all meet again, as long as there is time.
    const bool stopped = options_.wait_limit.stop != nullptr && options_.wait_limit.stop->requested();
    if (group.error().code != ErrorCode::unavailable || stopped || Steady::now() >= deadline) return group;
    log::debug("group.meets_again", {{"why", group.error().what}});
  }
}

Result<void> Group::reduce_between(void* group, std::span<float> sum) {
  return all_reduce(static_cast<Group*>(group)->peers_, sum);
}
Result<void> Group::share_between(void* group, std::span<float> values) {
  auto* self = static_cast<Group*>(group);
  return broadcast(self->peers_, values, self->table_.members[self->table_.source].machine);
}

std::span<float> Group::own() { return memory_ ? memory_->own() : std::span<float>(alone_); }

Result<Sum> Group::reduce(const std::function<void()>& meanwhile) {
  const bool several = table_.machines() > 1;
  if (memory_) return memory_->reduce(meanwhile, several ? &Group::reduce_between : nullptr, this);
  if (several)
    if (auto done = all_reduce(peers_, alone_); !done) return fail(done.error());
  return Sum(alone_);
}

Result<void> Group::share(std::span<float> values) {
  const GroupTable::Member& source = table_.members[table_.source];
  const bool several = table_.machines() > 1;
  const std::size_t step = memory_ ? memory_->own().size() : std::max<std::size_t>(values.size(), 1);
  for (std::size_t at = 0; at < values.size(); at += step) {
    const std::span<float> part = values.subspan(at, std::min(step, values.size() - at));
    Result<void> done;
    if (memory_)
      done = memory_->broadcast(part, source.local, source.machine == table_.members[rank_].machine,
                                several ? &Group::share_between : nullptr, this);
    else if (several)
      done = share_between(this, part);
    if (!done) return done;
  }
  return {};
}

}  // namespace slipway::train
