#include "blob/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file.h"
#include "blob/folder.h"
#include "blob/state.h"

namespace slipway::blob {
namespace {

constexpr std::size_t at_once_max = 8;

std::string without_slash(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

// Who holds the lock ends its sync or dies; both let go of it.
Result<FileLock> wait_for_lock(const std::string& path) {
  for (;;) {
    auto lock = FileLock::take(path);
    if (lock || lock.error().code != ErrorCode::conflict) return lock;
    std::this_thread::sleep_for(200ms);
  }
}

class Sync {
 public:
  Sync(BlobContainer& container, Folder folder, std::string state_path)
      : container_(container), folder_(std::move(folder)), state_path_(std::move(state_path)) {}

  void load();
  Result<Sides> look(std::vector<BlobInfo> there);
  Result<SyncReport> carry_out(Plan plan);
  bool is_same_folder() const { return same_folder_; }

 private:
  Result<void> move_all(const std::vector<Action>& actions);
  Result<void> act(BlobContainer& container, const Action& action);
  Result<void> download(BlobContainer& container, const Action& action);
  Result<void> upload(BlobContainer& container, const Action& action);
  Result<bool> is_settled(const Action& action, bool& is_conflict);
  void note(const std::string& name, std::optional<KnownFile> file);
  void count(const BlobInfo& moved, bool is_conflict);
  Result<void> save();

  BlobContainer& container_;
  Folder folder_;
  std::string state_path_;
  bool same_folder_ = true;
  std::mutex mutex_;  // of the two below
  std::map<std::string, KnownFile> known_;
  SyncReport report_;
};

void Sync::load() {
  const auto text = read_file(state_path_);
  if (!text) return;  // the first sync, or none that is known of
  auto state = parse_state(*text);
  if (!state || state->container != container_.name()) return;
  same_folder_ = state->folder == folder_.identity();
  for (KnownFile& file : state->files) known_[file.here.name] = std::move(file);
}

Result<Sides> Sync::look(std::vector<BlobInfo> there) {
  folder_.remove_partial_files();
  Sides sides{.there = std::move(there), .here = {}, .known = {}};
  auto here = folder_.list(sides.not_files);
  if (!here) return fail(std::move(here.error()));
  sides.here = std::move(*here);
  for (const auto& [name, file] : known_) sides.known.push_back(file);
  return sides;
}

Result<SyncReport> Sync::carry_out(Plan plan) {
  report_.unchanged = plan.unchanged;
  report_.kept = std::move(plan.kept_here);
  std::move(plan.kept_there.begin(), plan.kept_there.end(), std::back_inserter(report_.kept));
  report_.skipped = std::move(plan.skipped);
  const auto moved = move_all(plan.actions);
  const auto saved = save();  // also what was done before something failed
  if (!moved) return fail(moved.error());
  if (!saved) return fail(saved.error());
  std::sort(report_.conflicts.begin(), report_.conflicts.end());
  return std::move(report_);
}

// Deletions come first and one by one; then the files, several at once.
Result<void> Sync::move_all(const std::vector<Action>& actions) {
  const auto is_move = [](const Action& action) {
    return action.kind == Action::Kind::download || action.kind == Action::Kind::upload;
  };
  const auto first = std::find_if(actions.begin(), actions.end(), is_move);
  for (auto action = actions.begin(); action != first; ++action)
    if (auto done = act(container_, *action); !done) return done;

  std::atomic<std::size_t> next = static_cast<std::size_t>(first - actions.begin());
  std::optional<Error> failed;
  const auto work = [&](BlobContainer& container) {
    for (std::size_t i = next++; i < actions.size(); i = next++) {
      const auto done = act(container, actions[i]);
      if (done) continue;
      const std::lock_guard lock(mutex_);
      if (!failed) failed = done.error();
      next = actions.size();
    }
  };
  std::vector<std::thread> helpers;
  const std::size_t moves = actions.size() - next;
  for (std::size_t i = 1; i < std::min(at_once_max, moves); ++i)
    helpers.emplace_back([&, own = container_.another()]() mutable { work(own); });
  work(container_);
  for (std::thread& helper : helpers) helper.join();
  if (failed) return fail(*failed);
  return {};
}

Result<void> Sync::act(BlobContainer& container, const Action& action) {
  switch (action.kind) {
    case Action::Kind::forget: note(action.name, std::nullopt); return {};
    case Action::Kind::delete_here:
      if (auto removed = folder_.remove(action.name); !removed) return removed;
      break;
    case Action::Kind::delete_there: {
      const auto removed = container.remove(action.name, action.known.etag);
      if (!removed) return fail(removed.error());
      if (!*removed) {  // another one by now, or gone
        note(action.name, std::nullopt);
        return {};
      }
      break;
    }
    case Action::Kind::download: return download(container, action);
    case Action::Kind::upload: return upload(container, action);
  }
  note(action.name, std::nullopt);
  const std::lock_guard lock(mutex_);
  ++report_.deleted;
  return {};
}

// Whether the content here says that nothing has to move; then it is noted as it is now. A file that was only
// touched is no conflict.
Result<bool> Sync::is_settled(const Action& action, bool& is_conflict) {
  is_conflict = action.is_conflict;
  if (!action.unless_same_as_there && !action.unless_same_as_known && !action.is_conflict) return false;
  const auto file = folder_.open_file(action.name);
  if (!file) {
    if (file.error().code == ErrorCode::not_found) return false;
    return fail(file.error());
  }
  const auto here = folder_.look(action.name);  // before it is read: what changes meanwhile is seen next time
  if (!here) return fail(here.error());
  const auto md5 = md5_of_file(file->get());
  if (!md5) return fail(md5.error());
  if (*md5 == action.known.md5) is_conflict = false;
  if (action.unless_same_as_there && *md5 == action.there.md5) {
    note(action.name, KnownFile{*here, action.there.etag, *md5});
    return true;
  }
  if (action.unless_same_as_known && *md5 == action.known.md5) {
    note(action.name, KnownFile{*here, action.known.etag, *md5});
    return true;
  }
  return false;
}

Result<void> Sync::download(BlobContainer& container, const Action& action) {
  bool is_conflict = false;
  const auto settled = is_settled(action, is_conflict);
  if (!settled) return fail(settled.error());
  if (*settled) {
    const std::lock_guard lock(mutex_);
    ++report_.unchanged;
    return {};
  }
  auto file = folder_.create(action.name);
  if (!file) return fail(file.error());
  const auto got = container.download(action.there, file->fd());
  if (!got) {
    if (got.error().code == ErrorCode::not_found) return {};  // deleted meanwhile; the next pull sees it
    return fail(got.error());
  }
  const auto here = file->finish();
  if (!here) return fail(here.error());
  note(action.name, KnownFile{*here, got->etag, got->md5});
  count(*got, is_conflict);
  return {};
}

Result<void> Sync::upload(BlobContainer& container, const Action& action) {
  bool is_conflict = false;
  const auto settled = is_settled(action, is_conflict);
  if (!settled) return fail(settled.error());
  if (*settled) {
    const std::lock_guard lock(mutex_);
    ++report_.unchanged;
    return {};
  }
  const auto file = folder_.open_file(action.name);
  if (!file) {
    if (file.error().code == ErrorCode::not_found) return {};  // removed meanwhile; the next push sees it
    return fail(file.error());
  }
  const auto here = folder_.look(action.name);
  if (!here) return fail(here.error());
  const auto put = container.upload(action.name, file->get());
  if (!put) return fail(put.error());
  note(action.name, KnownFile{*here, put->etag, put->md5});
  count(*put, is_conflict);
  return {};
}

void Sync::note(const std::string& name, std::optional<KnownFile> file) {
  const std::lock_guard lock(mutex_);
  if (file)
    known_[name] = std::move(*file);
  else
    known_.erase(name);
}

void Sync::count(const BlobInfo& moved, bool is_conflict) {
  const std::lock_guard lock(mutex_);
  ++report_.moved;
  report_.bytes += moved.size;
  if (is_conflict) report_.conflicts.push_back(moved.name);
}

Result<void> Sync::save() {
  // A file that is noted must not be found short after a power cut: it would count as changed, and be sent.
  if (auto flushed = folder_.flush(); !flushed) return flushed;
  SyncState state{.container = container_.name(), .folder = folder_.identity(), .files = {}};
  for (const auto& [name, file] : known_) state.files.push_back(file);
  return write_file_durably(state_path_, format_state(state));
}

}  // namespace

Result<SyncReport> pull(BlobContainer& container, const std::string& given) {
  const std::string folder = without_slash(given);
  if (auto made = make_folders(folder); !made) return fail(std::move(made.error()));
  const auto lock = wait_for_lock(folder + ".sync.lock");
  if (!lock) return fail(lock.error());
  auto there = container.list();  // not before it is our turn: an older list would undo what others did
  if (!there) return fail(std::move(there.error()));
  auto opened = Folder::open(folder);
  if (!opened) return fail(std::move(opened.error()));
  Sync sync(container, std::move(*opened), folder + ".sync");
  sync.load();
  auto sides = sync.look(std::move(*there));
  if (!sides) return fail(std::move(sides.error()));
  return sync.carry_out(plan_pull(*sides));
}

Result<SyncReport> push(BlobContainer& container, const std::string& given) {
  const std::string folder = without_slash(given);
  auto opened = Folder::open(folder);
  if (!opened) return fail(std::move(opened.error()));
  const auto lock = wait_for_lock(folder + ".sync.lock");
  if (!lock) return fail(lock.error());
  auto there = container.list();
  if (!there && there.error().code == ErrorCode::not_found) {
    if (auto made = container.create(); !made) return fail(std::move(made.error()));
    there = std::vector<BlobInfo>();
  }
  if (!there) return fail(std::move(there.error()));
  Sync sync(container, std::move(*opened), folder + ".sync");
  sync.load();
  auto sides = sync.look(std::move(*there));
  if (!sides) return fail(std::move(sides.error()));
  return sync.carry_out(plan_push(*sides, {.removals_count = sync.is_same_folder()}));
}

}  // namespace slipway::blob
