#pragma once
// The versions of one model: which are wanted, which are loaded, and what to do next. Pure: the clock is
// handed in, loading is done by whoever asks for the next step and reports how it went.
//
// A version that is wanted is loaded before the last one that is loaded goes, so that there is always one to
// answer with. One step at a time.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "serve/failure.h"

namespace slipway::serve {

// --- which versions a folder offers, and which of them are wanted

struct LatestPolicy {
  std::int64_t count = 1;  // 0 counts as 1
  friend bool operator==(const LatestPolicy&, const LatestPolicy&) = default;
};
struct AllPolicy {
  friend bool operator==(const AllPolicy&, const AllPolicy&) = default;
};
struct SpecificPolicy {
  std::vector<std::int64_t> versions;
  friend bool operator==(const SpecificPolicy&, const SpecificPolicy&) = default;
};
using VersionPolicy = std::variant<LatestPolicy, AllPolicy, SpecificPolicy>;

// What names of folders stand for: 00000123 is 123; others are no versions. Where two mean one number, the
// one that sorts last is taken.
std::map<std::int64_t, std::string> parse_version_names(const std::vector<std::string>& names);
std::vector<std::int64_t> wanted_versions(const std::map<std::int64_t, std::string>& present,
                                          const VersionPolicy& policy);

// --- what happens to them

enum class VersionState { start, loading, available, unloading, end };
const char* to_string(VersionState state);  // AVAILABLE

struct VersionStatus {
  std::int64_t number = 0;
  VersionState state = VersionState::start;
  Failure failure{Code::ok, ""};
  friend bool operator==(const VersionStatus&, const VersionStatus&) = default;
};

struct RetryPolicy {
  int retries_max = 5;
  Duration interval = 60s;
};

struct LoadVersion {
  std::int64_t number;
  friend bool operator==(const LoadVersion&, const LoadVersion&) = default;
};
struct UnloadVersion {
  std::int64_t number;
  friend bool operator==(const UnloadVersion&, const UnloadVersion&) = default;
};
using VersionStep = std::variant<std::monostate, LoadVersion, UnloadVersion>;

class ModelVersions {
 public:
  explicit ModelVersions(RetryPolicy retry) : retry_(retry) {}

  void want(const std::vector<std::int64_t>& numbers);
  // The next step; the state is changed as if it had begun. Nothing while another is under way.
  VersionStep next(TimePoint now);
  void loaded(std::int64_t number);
  void load_failed(std::int64_t number, Failure failure, TimePoint now);
  void unloaded(std::int64_t number);
  // Its files changed: a load that failed is tried again, from the beginning.
  void changed(std::int64_t number);

  // When next() may have something to do although nothing else happens; nullopt: never.
  std::optional<TimePoint> retry_at() const;
  std::vector<VersionStatus> status() const;  // newest first; those that ended stay listed
  std::optional<std::int64_t> newest_available() const;
  bool is_available(std::int64_t number) const;
  bool wants(std::int64_t number) const;
  // Whether every wanted version is available or has failed at least once.
  bool is_settled() const;

 private:
  struct Version {
    VersionStatus status;
    bool is_wanted = false;
    int failures = 0;
    TimePoint retry_at{};
  };
  std::optional<std::int64_t> to_unload() const;

  RetryPolicy retry_;
  std::map<std::int64_t, Version> versions_;
};

}  // namespace slipway::serve
