#include "track/tracker.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"

namespace slipway::track {
namespace {

// Runs whose points go to their files in one checkpoint: nothing is logged meanwhile.
constexpr std::size_t flushed_at_once = 200;

}  // namespace

Tracker::Tracker(TrackerOptions options, Image& image, const Clock& clock)
    : options_(std::move(options)), image_(image), clock_(clock), journal_(options_.folder + "/journal") {}

Result<std::unique_ptr<Tracker>> Tracker::open(TrackerOptions options, Image& image, const Clock& clock) {
  std::unique_ptr<Tracker> tracker(new Tracker(std::move(options), image, clock));
  if (auto loaded = tracker->load(); !loaded) return fail(loaded.error());
  tracker->upkeep_ =
      std::jthread([self = tracker.get()](const std::stop_token& stop) { self->run_upkeep(stop); });
  return tracker;
}

Tracker::~Tracker() {
  if (!upkeep_.joinable()) return;  // it could not be opened
  upkeep_.request_stop();
  upkeep_.join();
  if (auto saved = checkpoint(); !saved) log::warning("track.checkpoint", {{"why", saved.error().what}});
}

// The last checkpoint, and what the journal has since.
Result<void> Tracker::load() {
  auto state = std::make_unique<State>(options_.folder + "/points");
  auto number = image_.load([&](const EntityName& name, std::string_view body) -> Result<void> {
    if (load_entity(*state, name, body)) return {};
    return fail(ErrorCode::internal,
                fmt::format("the tracking database is damaged: the row of '{}' makes no sense", name.id),
                "restore the data folder from a backup");
  });
  if (!number) return fail(number.error());
  state->take_changed();  // as the image has them
  auto opened = journal_.open(*number, [&](std::uint64_t record, std::string_view bytes) -> Result<void> {
    if (apply_record(*state, bytes)) return {};
    return fail(ErrorCode::internal, fmt::format("record {} of the tracking journal makes no sense", record),
                "it was written by a newer Slipway: use that one");
  });
  if (!opened) return opened;
  state_ = std::move(state);
  return {};
}

Result<void> Tracker::get_ready() {
  if (!journal_.has_failed()) return journal_.ready();
  if (auto probed = journal_.probe(); !probed) return probed;
  log::info("track.reload");
  return load();
}

void Tracker::note_change() {
  const std::scoped_lock lock(upkeep_mutex_);
  const bool is_now = journal_.bytes() > options_.journal_bytes_max;
  if (is_due_ && (is_due_now_ || !is_now)) return;
  is_due_ = true;
  is_due_now_ = is_now;
  upkeep_wake_.notify_one();
}

void Tracker::run_upkeep(const std::stop_token& stop) {
  std::unique_lock lock(upkeep_mutex_);
  while (!stop.stop_requested()) {
    upkeep_wake_.wait(lock, stop, [&] { return is_due_; });
    upkeep_wake_.wait_for(lock, stop, options_.checkpoint_after, [&] { return is_due_now_; });
    if (stop.stop_requested()) return;
    is_due_ = is_due_now_ = false;
    lock.unlock();
    if (auto saved = checkpoint(); !saved) log::warning("track.checkpoint", {{"why", saved.error().what}});
    // Runs whose points are in memory are looked at again: they may have become idle.
    const bool has_open = read([](const State& state) {
      for (const auto& [id, run] : state.runs())
        if (run->points) return true;
      return state.has_changed();
    });
    lock.lock();
    is_due_ = is_due_ || has_open;
  }
}

Result<void> Tracker::checkpoint() {
  const std::scoped_lock one(checkpoint_mutex_);
  std::vector<Image::Row> rows;
  std::vector<std::string> files;  // to be synced
  std::set<EntityName> changed;
  struct Saved {
    std::uint64_t file_size = 0, generation = 0;
    bool is_idle = false;
  };
  std::map<std::string, Saved> runs;
  std::uint64_t number = 0;
  std::size_t flushed = 0;
  bool is_more = false;
  {
    const std::unique_lock lock(mutex_);
    if (journal_.has_failed()) return fail(journal_.ready().error());
    for (const auto& [id, run] : state_->runs()) {
      if (!run->points) continue;
      const bool is_idle = run->points->generation() == run->saved_generation || is_ended(run->info.status);
      if (is_idle && flushed == flushed_at_once) {
        is_more = true;
        continue;
      }
      // What cannot be written stays in memory, and in the row.
      const bool is_flushed = is_idle && run->points->flush(state_->keys()).has_value();
      flushed += is_flushed ? 1 : 0;
      state_->mark_changed(*run);
      runs[id] = {run->points->file_size(), run->points->generation(), is_flushed};
      if (run->points->file_size() != run->saved_file_size) files.push_back(state_->points_path(id));
    }
    changed = state_->take_changed();
    if (changed.empty()) return {};
    rows.reserve(changed.size());
    for (const EntityName& name : changed) rows.push_back({name, format_entity(*state_, name)});
    number = journal_.rotate();
  }
  const auto save = [&]() -> Result<void> {
    for (const std::string& file : files)
      if (auto synced = sync_points_file(file); !synced) return synced;
    return image_.save(number, rows);
  };
  const auto saved = save();
  const std::unique_lock lock(mutex_);
  if (!saved) {
    state_->put_back_changed(changed);
    return saved;
  }
  for (const auto& [id, as_saved] : runs) {
    Run* run = state_->run(id);
    if (!run) continue;
    run->saved_file_size = run->file_size = as_saved.file_size;
    run->saved_generation = as_saved.generation;
    if (as_saved.is_idle && run->points && run->points->generation() == as_saved.generation)
      run->points.reset();
  }
  journal_.remove_through(number);
  if (is_more) {
    const std::scoped_lock due(upkeep_mutex_);
    is_due_ = is_due_now_ = true;
    upkeep_wake_.notify_one();
  }
  return {};
}

}  // namespace slipway::track
