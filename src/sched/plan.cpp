#include "sched/plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace slipway::sched {
namespace {

Share share_of(const Pool& pool, const Shape& shape) {
  return pool.capacity.share(shape.per_node) * shape.nodes;
}

class Planner {
 public:
  Planner(Pool& pool, const PlanOptions& options, const Place& place)
      : pool_(pool), options_(options), place_(place), scores_(pool.sharing.scores(options.now)) {
    // What was too much for a limit may no longer be, beside larger nodes.
    if (std::exchange(pool.share_version, pool.capacity.share_version()) != pool.share_version)
      pool.queue.take_back_all();
    heads_.reserve(pool.queue.shapes().size());
    for (const auto& [shape, waiting] : pool.queue.shapes()) heads_.push_back({shape, share_of(pool, shape)});
    for (Head& head : heads_) head.turn = first_of(head);
  }

  std::optional<TimePoint> run() {
    check_reservation();
    for (;;) {
      Head* next = first_head();
      if (pool_.reservation && !reserved_tried_ &&
          (!next || next->turn->priority <= pool_.reservation->turn.priority)) {
        try_reserved();
      } else if (!next) {
        return look_again_;
      } else if (const auto nodes = find(*next)) {
        start(next->shape, *next->turn, *nodes);
      } else {
        next->blocked = true;
        consider_reserving(*next);
      }
    }
  }

  std::optional<std::pair<Shape, Turn>> first() {
    const Head* head = first_head();
    return head ? std::optional(std::pair(head->shape, *head->turn)) : std::nullopt;
  }

 private:
  struct Head {  // of those that ask for one shape
    Shape shape;
    Share share = 0;  // of all its nodes
    std::optional<Turn> turn{};
    bool blocked = false;
  };

  bool is_before(const Turn& a, const Turn& b) const {
    const auto key = [&](const Turn& turn) {
      return std::tuple(-turn.priority, scores_[turn.user.value()], turn.job);
    };
    return key(a) < key(b);
  }

  // Whose turn it is among those that ask for this shape.
  std::optional<Turn> first_of(const Head& head) {
    const auto waiting = pool_.queue.shapes().find(head.shape);
    if (waiting == pool_.queue.shapes().end()) return std::nullopt;
    std::vector<Turn> full;  // at their own limit
    std::optional<Turn> best;
    for (const auto& [priority, level] : waiting->second.levels) {
      for (const auto& [user, line] : level) {
        if (best && scores_[user.value()] > scores_[best->user.value()]) continue;
        if (pool_.sharing.block_of_user(user, head.share)) continue;
        for (const auto& [job, since] : line) {
          const Turn turn{priority, job, user};
          if (pool_.sharing.block_of_job(job, head.share)) {
            full.push_back(turn);
            continue;
          }
          if (!best || is_before(turn, *best)) best = turn;
          break;
        }
      }
      if (best) break;
    }
    for (const Turn& turn : full) pool_.queue.set_aside(head.shape, turn);
    return best;
  }

  Head* first_head() {
    Head* best = nullptr;
    for (Head& head : heads_) {
      if (!head.turn || head.blocked) continue;
      // Within one job the larger shape goes first: it is the harder one to place.
      if (!best || is_before(*head.turn, *best->turn) ||
          (*head.turn == *best->turn && best->shape < head.shape))
        best = &head;
    }
    return best;
  }

  std::optional<std::vector<NodeId>> find(const Head& head) const {
    if (auto nodes = pool_.capacity.find(head.shape)) return nodes;
    if (!pool_.reservation) return std::nullopt;
    const Reservation& reservation = *pool_.reservation;
    const bool is_above = head.turn->priority > reservation.turn.priority;
    const bool ends_before = head.shape.lasts_max.count() > 0 && reservation.starts_by &&
                             options_.now + head.shape.lasts_max <= *reservation.starts_by;
    if (is_above || ends_before) return pool_.capacity.find(head.shape, Use::kept_last);
    return std::nullopt;
  }

  // By value: the heads they come from are looked for anew.
  void start(Shape shape, Turn turn, const std::vector<NodeId>& nodes) {
    if (pool_.reservation && pool_.reservation->turn == turn && pool_.reservation->shape == shape)
      drop_reservation();
    place_(shape, turn, nodes);
    scores_[turn.user.value()] = pool_.sharing.score(turn.user, options_.now);
    for (Head& head : heads_)  // others have not come any nearer or further
      if (!head.blocked && head.turn && head.turn->user == turn.user) head.turn = first_of(head);
  }

  // It stands as long as its task waits, may start, and its nodes can be had.
  void check_reservation() {
    if (!pool_.reservation) return;
    const Reservation& reservation = *pool_.reservation;
    const Share share = share_of(pool_, reservation.shape);
    if (!pool_.queue.since(reservation.shape, reservation.turn) || !pool_.capacity.kept_are_able() ||
        pool_.sharing.block_of_user(reservation.turn.user, share) ||
        pool_.sharing.block_of_job(reservation.turn.job, share))
      drop_reservation();
  }

  void drop_reservation() {
    pool_.reservation.reset();
    pool_.capacity.keep_nothing();
    for (Head& head : heads_)  // there is more room to be had
      if (std::exchange(head.blocked, false)) head.turn = first_of(head);
  }

  void try_reserved() {
    check_reservation();  // what was started meanwhile may have used up its user's limit
    if (!pool_.reservation) return;
    reserved_tried_ = true;
    const auto [shape, turn] = std::pair(pool_.reservation->shape, pool_.reservation->turn);
    if (const auto nodes = pool_.capacity.find(shape, Use::kept_first)) start(shape, turn, *nodes);
  }

  void consider_reserving(const Head& head) {
    if (pool_.reservation && pool_.reservation->turn.priority >= head.turn->priority) return;
    const TimePoint due = *pool_.queue.since(head.shape, *head.turn) + options_.reserve_after;
    if (due > options_.now) {
      if (!look_again_ || due < *look_again_) look_again_ = due;
      return;
    }
    if (pool_.capacity.able(head.shape) < head.shape.nodes) return;
    pool_.capacity.keep_nothing();
    Reservation made{head.shape, *head.turn, pool_.capacity.nearest_to_fit(head.shape), options_.now,
                     options_.now};
    for (const NodeId node : made.nodes) {
      const auto free_by = options_.free_by ? options_.free_by(node, made.shape.per_node) : std::nullopt;
      if (!free_by) made.starts_by.reset();
      if (!made.starts_by) break;
      made.starts_by = std::max(*made.starts_by, *free_by);
    }
    pool_.capacity.keep(made.nodes, made.shape.per_node);
    pool_.reservation = std::move(made);
    reserved_tried_ = true;  // it did not fit a moment ago
  }

  Pool& pool_;
  const PlanOptions& options_;
  const Place& place_;
  std::vector<double> scores_;  // by user
  std::vector<Head> heads_;
  bool reserved_tried_ = false;
  std::optional<TimePoint> look_again_;
};

}  // namespace

std::optional<TimePoint> plan(Pool& pool, const PlanOptions& options, const Place& place) {
  return Planner(pool, options, place).run();
}

std::optional<std::pair<Shape, Turn>> first(Pool& pool, TimePoint now) {
  return Planner(pool, {.now = now}, {}).first();
}

std::vector<Line> order(const Pool& pool, TimePoint now) {
  const std::vector<double> scores = pool.sharing.scores(now);
  std::vector<Line> lines;
  for (const auto& [shape, waiting] : pool.queue.shapes()) {
    const Share share = share_of(pool, shape);
    const auto add = [&, &one = shape](const Turn& turn, TimePoint since) {
      auto block = pool.sharing.block_of_user(turn.user, share);
      if (!block) block = pool.sharing.block_of_job(turn.job, share);
      lines.push_back({one, turn, since, block});
    };
    for (const auto& [priority, level] : waiting.levels)
      for (const auto& [user, line] : level)
        for (const auto& [job, since] : line) add({priority, job, user}, since);
    for (const auto& [job, entry] : waiting.aside) add(entry.first, entry.second);
  }
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) {
    const auto key = [&](const Line& line) {
      return std::tuple(-line.turn.priority, scores[line.turn.user.value()], line.turn.job);
    };
    return key(a) != key(b) ? key(a) < key(b) : b.shape < a.shape;
  });
  return lines;
}

}  // namespace slipway::sched
