#include "blob/command.h"

#include <fmt/format.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "blob/sync.h"

namespace slipway::blob {
namespace {

constexpr std::size_t named_max = 20;  // of each kind; the rest is counted

int complain(const Error& error) {
  const std::size_t colon = error.what.find(": ");
  fmt::print(stderr, "error: {}\n", error.what.substr(0, colon));
  if (colon != std::string::npos) fmt::print(stderr, "why:   {}\n", error.what.substr(colon + 2));
  if (!error.hint.empty()) fmt::print(stderr, "try:   {}\n", error.hint);
  return 1;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string files(std::uint64_t count) { return fmt::format("{} file{}", count, count == 1 ? "" : "s"); }

template <class Items, class Line>
void name_each(const Items& items, const Line& line) {
  for (std::size_t i = 0; i < items.size() && i < named_max; ++i)
    fmt::print(stderr, "note:  {}\n", line(items[i]));
  if (items.size() > named_max)
    fmt::print(stderr, "note:  … and {} more like this\n", items.size() - named_max);
}

}  // namespace

int sync_datastore(const std::string& direction, const std::string& folder) {
  if (const std::string parent = variable("SLIPWAY_DATASTORE_PARENT"); !parent.empty()) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (std::to_string(::getppid()) != parent)  // it ended before it could be watched
      return complain(
          {ErrorCode::conflict, fmt::format("process {}, which started this, has ended", parent), ""});
  }
  const bool is_pull = direction == "pull";
  std::string url = variable("SLIPWAY_DATASTORE_URL");
  std::string key = variable("SLIPWAY_DATASTORE_KEY");
  if (key.starts_with('?')) url += std::exchange(key, {});  // a SAS
  if (url.empty())
    return complain(
        {ErrorCode::invalid,
         "slipway node sync-datastore does not know its container: SLIPWAY_DATASTORE_URL is not set",
         "set it to the container's address, and SLIPWAY_DATASTORE_KEY to the account's key"});
  auto container = BlobContainer::open(url, key);
  if (!container) return complain(container.error());
  const auto report = is_pull ? pull(*container, folder) : push(*container, folder);
  if (!report) return complain(report.error());

  const std::string verb = is_pull ? "pulled" : "pushed";
  name_each(report->conflicts, [&](const std::string& name) {
    return fmt::format("{} had changed on both sides; the {} version won", name,
                       is_pull ? "container's" : "folder's");
  });
  name_each(report->skipped, [](const Skipped& skipped) {
    return fmt::format("{} was left out: {}", skipped.name, skipped.why);
  });
  fmt::print("{} {} ({}) {} {}: {} unchanged, {} deleted, {} kept, {} conflict{}, {} left out\n", verb,
             files(report->moved), format_bytes(report->bytes), is_pull ? "from" : "to", container->name(),
             report->unchanged, report->deleted, report->kept.size(), report->conflicts.size(),
             report->conflicts.size() == 1 ? "" : "s", report->skipped.size());
  return 0;
}

}  // namespace slipway::blob
