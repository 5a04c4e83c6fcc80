#pragma once
// How the ranks of an all-reduce meet, and the group they form.
//
// Rank 0 listens at the master address. Every rank sends its step and its machine; when all are
// there rank 0 sends everyone the table: who is on which machine, whose state is newest. Ranks of one machine
// share memory, the first of each machine talks TCP with the others' first. A group lasts until a rank is
// lost; then all meet again.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "train/exchange/collective.h"
#include "train/exchange/exchange.h"
#include "train/exchange/shared_memory.h"

namespace slipway::train {

struct Introduction {  // a rank's hello
  std::uint32_t rank = 0, ranks = 1;
  std::uint64_t layout = 0, floats = 0, step = 0;
  std::string machine;     // equal for ranks that can share memory
  std::uint16_t port = 0;  // where other machines' first ranks reach it
};
std::string format_introduction(const Introduction& introduction);
Result<Introduction> parse_introduction(std::string_view text);

struct GroupTable {
  struct Member {
    std::uint32_t machine = 0, local = 0;  // which machine, and which of the ranks there
    Address address;
  };
  std::string session;       // distinguishes this rendezvous from earlier ones
  std::uint32_t source = 0;  // the rank whose state all take
  std::uint64_t step = 0;    // and its step
  std::vector<Member> members;

  std::uint32_t machines() const;
  std::vector<std::uint32_t> ranks_of(std::uint32_t machine) const;
};
std::string format_table(const GroupTable& table);
Result<GroupTable> parse_table(std::string_view text);
// From everyone's hello; `hosts` are the addresses they came from. The newest state wins, then the lower
// rank.
GroupTable make_table(const std::vector<Introduction>& introductions, const std::vector<std::string>& hosts,
                      std::string session);

class Group {
 public:
  // The sum over all ranks, the same bits everywhere; valid until the next call.
  Result<Sum> reduce(const std::function<void()>& meanwhile);
  std::span<float> own();  // where this rank's part of the next reduce() is written
  // Everyone gets the source's values.
  Result<void> share(std::span<float> values);
  const GroupTable& table() const { return table_; }

 private:
  friend class Rendezvous;
  Group() = default;
  static Result<void> reduce_between(void* group, std::span<float> sum);
  static Result<void> share_between(void* group, std::span<float> values);

  GroupTable table_;
  std::uint32_t rank_ = 0;
  std::unique_ptr<SharedMemory> memory_;  // null when alone on this machine
  Peers peers_;                           // first ranks of machines; empty on the others and on one machine
  Flat alone_;                            // this rank's array when nothing is shared
};

class Rendezvous {  // what stays between two groups: the listening sockets
 public:
  static Result<std::unique_ptr<Rendezvous>> open(const AllReduceOptions& options);
  // Waits for all ranks, within the limit.
  Result<std::unique_ptr<Group>> form(std::uint64_t step);

 private:
  explicit Rendezvous(const AllReduceOptions& options) : options_(options) {}
  Result<std::unique_ptr<Group>> form_once(std::uint64_t step, const WaitLimit& wait_limit);
  Result<void> gather(const Introduction& own, std::vector<Introduction>& all,
                      std::vector<std::string>& hosts, const WaitLimit& wait_limit);
  Result<void> connect_machines(Group& group, const WaitLimit& wait_limit);

  AllReduceOptions options_;
  Fd master_;                         // rank 0 only
  Fd data_;                           // where other machines connect
  std::vector<Connection> controls_;  // rank 0: one per rank; others: [0] leads to rank 0
};

}  // namespace slipway::train
