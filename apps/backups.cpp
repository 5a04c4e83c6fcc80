#include "apps/backups.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "store/upkeep.h"

namespace slipway {
namespace {

namespace fs = std::filesystem;

constexpr int hour_of_night = 3;
constexpr std::time_t day = 24 * 3600;
constexpr std::time_t hour = 3600;

// Oldest first: their names are times.
std::vector<std::string> backups_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("slipway-") && name.ends_with("Z.db")) names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string name_at(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[40];
  std::strftime(text, sizeof text, "slipway-%Y%m%dT%H%M%SZ.db", &parts);
  return text;
}

std::time_t next_night(std::time_t now) {
  std::tm parts{};
  ::localtime_r(&now, &parts);
  parts.tm_hour = hour_of_night;
  parts.tm_min = parts.tm_sec = 0;
  parts.tm_isdst = -1;
  std::time_t at = std::mktime(&parts);
  if (at <= now) {
    ++parts.tm_mday;
    parts.tm_isdst = -1;
    at = std::mktime(&parts);
  }
  return at;
}

}  // namespace

struct Backups::Night {
  std::string database, folder;
  std::size_t kept = 1;
  std::mutex mutex;
  std::condition_variable_any changed;  // nobody notifies it: it is woken when the service stops
  std::jthread thread;                  // last, so that it ends before what it uses

  void run(const std::stop_token& stop) {
    for (std::time_t next = first(); wait_until(next, stop);)
      next = back_up() ? next_night(now()) : now() + hour;
  }

  static std::time_t now() { return std::time(nullptr); }
  std::time_t first() const {
    const auto known = backups_in(folder);
    struct stat status {};
    if (known.empty() || ::stat(known.back().c_str(), &status) != 0) return now();
    return now() - status.st_mtime >= day ? now() : next_night(now());
  }

  // In pieces, as the clock may be set meanwhile. False: the service stops.
  bool wait_until(std::time_t at, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!stop.stop_requested() && now() < at)
      changed.wait_for(lock, stop, std::min<std::chrono::seconds>(10min, std::chrono::seconds(at - now())),
                       [] { return false; });
    return !stop.stop_requested();
  }

  bool back_up() const {
    const std::string to = folder + "/" + name_at(now());
    if (auto done = store::back_up_sqlite(database, to); !done) {
      log::error("backup.failed", {{"folder", folder}, {"why", done.error().what}});
      return false;
    }
    log::info("backup.made", {{"file", to}});
    const auto known = backups_in(folder);
    for (std::size_t i = 0; i + kept < known.size(); ++i) ::unlink(known[i].c_str());
    return true;
  }
};

Backups::Backups() : night_(std::make_unique<Night>()) {}
Backups::~Backups() = default;

Result<std::unique_ptr<Backups>> Backups::start(const std::string& database, const std::string& folder,
                                                std::size_t kept) {
  if (auto made = make_folders(folder, 0700); !made) return fail(made.error());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return fail(system_error("backups cannot be written to " + folder, errno));
  std::unique_ptr<Backups> backups(new Backups);
  Night& night = *backups->night_;
  night.database = database;
  night.folder = folder;
  night.kept = kept;
  night.thread = std::jthread([&night](const std::stop_token& stop) { night.run(stop); });
  return backups;
}

}  // namespace slipway
