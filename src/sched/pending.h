#pragma once
// The order of what waits, while a plan takes tasks from it: a Queue and a Sharing that stay as they are,
// less what was taken so far.
//
// Within a plan users and jobs only hold more, so a job that has nothing left or is at a limit is passed once
// and not looked at again.
#include <optional>
#include <unordered_map>
#include <vector>

#include "sched/capacity.h"
#include "sched/queue.h"
#include "sched/sharing.h"

namespace slipway::sched {

struct QueueKey {
  Shape shape;
  PriorityKey key;
  friend bool operator==(const QueueKey&, const QueueKey&) = default;
};

class Pending {
 public:
  struct Position {  // in one user's queue
    Queue::UserQueue::const_iterator at;
    std::uint64_t taken = 0;  // of that job
  };
  struct Head {  // the first of those that request one shape
    Shape shape;
    Share share = 0;         // of all its nodes
    QuotaAmounts amounts{};  // likewise
    const Queue::Pending* queue = nullptr;
    std::optional<PriorityKey> key{};
    bool skipped = false;  // it does not fit
    std::unordered_map<const Queue::UserQueue*, Position> positions{};
  };

  Pending(const Queue& queue, const ShareScale& scale, const Sharing& sharing, TimePoint now);

  Head* first();  // that is not skipped; null: there is none
  const Queue::Entry& entry(const Head& head) const;
  TimePoint since(const Head& head) const;
  // How many nodes the limits allow for one more task of it.
  std::uint64_t nodes_allowed(const Shape& shape, const PriorityKey& key) const;
  bool is_at_limit(const Shape& shape, const PriorityKey& key) const;

  void skip(Head& head) { head.skipped = true; }
  void unskip_all();
  void take(const QueueKey& which, std::size_t nodes);  // one task, that many nodes

  const std::vector<QueueKey>& at_limit() const { return at_limit_; }  // whose job was found at a limit

 private:
  Share share_of(const Shape& shape) const { return scale_.share(shape.per_node) * shape.nodes; }
  bool is_before(const PriorityKey& a, const PriorityKey& b) const;
  std::optional<PriorityKey> first_of(Head& head);
  std::optional<JobId> next_in(Head& head, const PriorityKey& user_key, const Queue::UserQueue& queue);
  void count_taken(Head& head, const PriorityKey& key);
  Held taken_by(UserId user) const { return users_.empty() ? Held{} : users_[user.value()]; }
  Held taken_by(JobId job) const;
  QuotaAmounts amounts_of(const Shape& shape, std::uint64_t nodes) const;
  const QuotaAmounts& amounts_taken_by(UserId user) const;
  bool is_user_at_limit(UserId user, Share share, const QuotaAmounts& amounts) const;

  const Queue& queue_;
  ShareScale scale_;
  const Sharing& sharing_;
  TimePoint now_;
  std::vector<double> scores_;  // by user
  std::vector<Held> users_;     // what each was given here; empty: nothing
  std::unordered_map<JobId, Held> jobs_;
  std::unordered_map<std::size_t, QuotaAmounts> amounts_by_user_;  // likewise
  QuotaAmounts amounts_;                                           // of all users
  std::vector<Head> heads_;
  std::optional<QueueKey> taken_early_;  // one that was not the first of its user
  std::vector<QueueKey> at_limit_;
};

}  // namespace slipway::sched
