#include "net/tail.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/log.h"

namespace slipway::net {
namespace {

// ATTRIB: the link count falls when a file is deleted that someone still has open.
constexpr std::uint32_t changes = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;

}  // namespace

// The inotify descriptor and who waits for what. Outlives the FileWatcher while one of its callbacks runs.
struct FileWatcher::Impl {
  explicit Impl(Loop& loop) : watches(std::make_shared<Watches>(loop)) {}
  struct Watches;
  std::shared_ptr<Watches> watches;
};

class FileWatcher::Handle {
 public:
  Handle(std::weak_ptr<Impl::Watches> watches, int watch, std::function<void()> changed)
      : watches_(std::move(watches)), watch_(watch), changed_(std::move(changed)) {}
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  void call() const { changed_(); }

 private:
  std::weak_ptr<Impl::Watches> watches_;
  int watch_;
  std::function<void()> changed_;
};

struct FileWatcher::Impl::Watches : std::enable_shared_from_this<Watches> {
  explicit Watches(Loop& watched_on) : loop(watched_on) {}

  bool open();
  std::shared_ptr<Handle> add(const std::string& path, std::function<void()> changed);
  void remove(int watch);
  void on_events();
  void call(const std::set<int>& changed);

  Loop& loop;
  Fd inotify;
  std::shared_ptr<Loop::Watch> readable;
  // By inotify's own number: two paths to one file share it, as two handles on one path do.
  std::map<int, std::vector<std::weak_ptr<Handle>>> handles;
};

FileWatcher::Handle::~Handle() {
  if (const auto watches = watches_.lock()) watches->remove(watch_);
}

bool FileWatcher::Impl::Watches::open() {
  if (inotify) return true;
  inotify = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) return false;
  readable = loop.watch(inotify.get(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_events();
  });
  if (!readable) inotify.reset();
  return readable != nullptr;
}

std::shared_ptr<FileWatcher::Handle> FileWatcher::Impl::Watches::add(const std::string& path,
                                                                     std::function<void()> changed) {
  if (!open()) return nullptr;
  const int watch = ::inotify_add_watch(inotify.get(), path.c_str(), changes);
  if (watch < 0) {
    log::warning("file.watch", {{"path", path}, {"error", std::string_view(std::strerror(errno))}});
    return nullptr;
  }
  auto handle = std::make_shared<Handle>(weak_from_this(), watch, std::move(changed));
  handles[watch].push_back(handle);
  return handle;
}

// Called by a handle's destructor, when it is already expired.
void FileWatcher::Impl::Watches::remove(int watch) {
  const auto found = handles.find(watch);
  if (found == handles.end()) return;
  std::erase_if(found->second, [](const auto& handle) { return handle.expired(); });
  if (!found->second.empty()) return;
  handles.erase(found);
  ::inotify_rm_watch(inotify.get(), watch);  // fails when the file is gone, and its watch with it
}

void FileWatcher::Impl::Watches::on_events() {
  std::set<int> changed;
  alignas(inotify_event) std::array<char, 4096> buffer;
  // Only what is there now: a file written without pause must not keep the loop here.
  const ssize_t got = ::read(inotify.get(), buffer.data(), buffer.size());
  for (ssize_t at = 0; at < got;) {
    inotify_event event{};
    std::memcpy(&event, buffer.data() + at, sizeof event);
    at += static_cast<ssize_t>(sizeof event + event.len);
    if (event.mask & IN_Q_OVERFLOW)  // events were lost: anything may have changed
      for (const auto& [watch, waiting] : handles) changed.insert(watch);
    else
      changed.insert(event.wd);
  }
  call(changed);
}

void FileWatcher::Impl::Watches::call(const std::set<int>& changed) {
  std::vector<std::weak_ptr<Handle>> called;  // a copy: callbacks add and remove handles
  for (const int watch : changed)
    if (const auto found = handles.find(watch); found != handles.end())
      called.insert(called.end(), found->second.begin(), found->second.end());
  for (const auto& weak : called)
    if (const auto handle = weak.lock()) handle->call();
}

FileWatcher::FileWatcher(Loop& loop) : impl_(std::make_unique<Impl>(loop)) {}
FileWatcher::~FileWatcher() = default;

std::shared_ptr<FileWatcher::Handle> FileWatcher::watch(const std::string& path,
                                                        std::function<void()> changed) {
  return impl_->watches->add(path, std::move(changed));
}

}  // namespace slipway::net
