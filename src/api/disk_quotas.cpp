#include "api/disk_quotas.h"

#include <utility>

#include "base/log.h"
#include "control/quotas.h"
#include "domain/layout.h"

namespace slipway::api {
namespace {

constexpr Duration pass_every = std::chrono::minutes(10);
constexpr int full_pass_every = 144;  // passes: a day
constexpr std::uint32_t jobs_a_page = 200;

}  // namespace

DiskQuotas::DiskQuotas(net::Loop& loop, control::Loop& control, ReadPool& reads, const BlobStore& blobs,
                       std::string data)
    : loop_(loop),
      control_(control),
      reads_(reads),
      blobs_(blobs),
      data_(std::move(data)),
      counter_(
          loop, [this](std::vector<DiskUse> uses) { save(std::move(uses)); },
          [this] {
            if (pass_) next_page();
          }) {}

// ── limits ──

void DiskQuotas::change(const QuotaRecord& quota) {
  const bool was_counted = is_counted(quota.key.workspace);
  if (const auto limit = quota.limits[QuotaKind::disk])
    limits_[quota.key] = *limit;
  else
    limits_.erase(quota.key);
  if (limits_.empty()) {
    timer_.reset();
    pass_.reset();
  } else if (!was_counted && is_counted(quota.key.workspace)) {
    begin_pass(true);
  }
}

std::optional<std::uint64_t> DiskQuotas::limit_of(const QuotaKey& key) const {
  for (const QuotaKey& one : {key, QuotaKey{key.workspace, std::string(every_user)}}) {
    if (const auto found = limits_.find(one); found != limits_.end()) return found->second;
    if (key.user.empty()) break;
  }
  return std::nullopt;
}

bool DiskQuotas::is_counted(const std::string& workspace) const {
  const auto first = limits_.lower_bound({workspace, {}});
  return first != limits_.end() && first->first.workspace == workspace;
}

std::optional<Error> DiskQuotas::refuse(const std::string& workspace, const std::string& user,
                                        std::uint64_t more) const {
  for (const QuotaKey& key : {QuotaKey{workspace, user}, QuotaKey{workspace, {}}}) {
    const auto max = limit_of(key);
    if (!max) continue;
    const auto found = used_.find(key);
    const std::uint64_t used = found == used_.end() ? 0 : found->second;
    if (used >= *max) return control::describe_full_disk(key, *max, used);
    if (more > *max - used) return control::describe_quota(key, QuotaKind::disk, *max, used, more);
  }
  return std::nullopt;
}

// ── what is to be counted ──

void DiskQuotas::add_job(const JobRecord& job) {
  counter_.add({{job.workspace, job.submitted_by},
                to_string(job.id),
                data_ + "/" + job_folder(job.workspace, job.id)});
  if (!job.source.empty()) add_code(job.workspace, job.submitted_by, job.source);
}

void DiskQuotas::add_code(const std::string& workspace, const std::string& user, const std::string& source) {
  counter_.add({{workspace, user}, "code/" + source, blobs_.path(source), true});
}

void DiskQuotas::add_datastore(const std::string& workspace, const std::string& name) {
  counter_.add({{workspace, {}}, "datastore/" + name, data_ + "/" + datastore_folder(workspace, name)});
}

void DiskQuotas::job_submitted(const std::string& workspace, const std::string& user,
                               const std::string& source) {
  if (!source.empty() && is_counted(workspace)) add_code(workspace, user, source);
}

void DiskQuotas::jobs_ended(const std::vector<std::pair<std::string, JobId>>& jobs) {
  std::vector<JobId> counted;
  for (const auto& [workspace, job] : jobs)
    if (is_counted(workspace)) counted.push_back(job);
  if (counted.empty()) return;
  reads_.post(
      [this, counted](control::ReadStore& store) {
        std::vector<JobRecord> found;
        for (const JobId id : counted)
          if (auto job = store.job(id); job && *job) found.push_back(std::move(**job));
        loop_.post([this, found] {
          for (const JobRecord& job : found) add_job(job);
        });
      },
      [](const Error& error) {
        log::warning("disk.count", {{"why", error.what}});
      });
}

void DiskQuotas::uploaded(const std::string& workspace, const std::string& datastore, std::uint64_t bytes) {
  if (!is_counted(workspace)) return;
  changed_.emplace(workspace, datastore);
  if (bytes == 0) return;
  control_.change(
      [use = DiskUse{{workspace, {}}, "datastore/" + datastore, bytes}](control::Controller& controller) {
        if (auto added = controller.add_disk(use); !added)
          log::warning("disk.count", {{"why", added.error().what}});
        return [] {};
      },
      [](const Error& error) {
        log::warning("disk.count", {{"why", error.what}});
      });
}

void DiskQuotas::changed(const std::string& workspace, const std::string& datastore) {
  if (is_counted(workspace)) add_datastore(workspace, datastore);
}

// Code that no job of its user came with any more.
void DiskQuotas::jobs_removed() {
  std::set<std::string> workspaces;
  for (const auto& [key, limit] : limits_) workspaces.insert(key.workspace);
  if (workspaces.empty()) return;
  reads_.post(
      [this, workspaces](control::ReadStore& store) {
        std::vector<DiskUse> gone;
        for (const std::string& workspace : workspaces) {
          const auto counted = store.disk_of_code(workspace);
          const auto sources = store.sources_of(workspace);
          if (!counted || !sources)
            return log::warning("disk.count", {{"why", (counted ? sources.error() : counted.error()).what}});
          const std::set<std::pair<std::string, std::string>> used(sources->begin(), sources->end());
          for (const DiskUse& use : *counted)
            if (!used.contains({use.key.user, use.thing.substr(use.thing.find('/') + 1)}))
              gone.push_back({use.key, use.thing, 0});
        }
        if (!gone.empty()) loop_.post([this, gone] { save(gone); });
      },
      [](const Error& error) {
        log::warning("disk.count", {{"why", error.what}});
      });
}

void DiskQuotas::save(std::vector<DiskUse> uses) {
  control_.change(
      [uses = std::move(uses)](control::Controller& controller) {
        if (auto counted = controller.count_disk(uses); !counted)
          log::warning("disk.count", {{"why", counted.error().what}});
        return [] {};
      },
      [](const Error& error) {
        log::warning("disk.count", {{"why", error.what}});
      });
}

// ── passes ──

void DiskQuotas::begin_pass(bool is_full) {
  wants_full_pass_ = wants_full_pass_ || is_full;
  timer_ = loop_.after(pass_every, [this] { begin_pass(passes_ % full_pass_every == 0); });
  if (pass_ && !is_full) return;  // it is slow: the disk holds much
  pass_ = Pass{++passes_, std::exchange(wants_full_pass_, false), {}, {}};
  for (const auto& [key, limit] : limits_)
    if (pass_->workspaces.empty() || pass_->workspaces.back() != key.workspace)
      pass_->workspaces.push_back(key.workspace);
  if (counter_.is_idle()) next_page();
}

void DiskQuotas::next_page() {
  if (is_reading_) return;
  if (pass_->workspaces.empty()) return pass_.reset();
  control::JobQuery query{.workspace = pass_->workspaces.back(), .limit = jobs_a_page};
  query.after = pass_->after.value_or(JobId{0});
  if (!pass_->is_full) query.state = JobState::running;
  is_reading_ = true;
  // What cannot be read now is left to the next pass.
  const auto failed = [this](const Error& error) {
    log::warning("disk.count", {{"why", error.what}});
    loop_.post([this] {
      is_reading_ = false;
      pass_.reset();
    });
  };
  reads_.post(
      [this, query, failed, number = pass_->number](control::ReadStore& store) {
        auto jobs = store.jobs(query);
        auto datastores = store.datastores(query.workspace);
        if (!jobs || !datastores) return failed(jobs ? datastores.error() : jobs.error());
        loop_.post([this, number, found = std::move(*jobs), folders = std::move(*datastores)] {
          is_reading_ = false;
          if (!pass_) return;
          pass_->number == number ? take_page(found, folders) : next_page();
        });
      },
      failed);
}

void DiskQuotas::take_page(const std::vector<JobRecord>& jobs,
                           const std::vector<DatastoreRecord>& datastores) {
  const std::string workspace = pass_->workspaces.back();
  if (jobs.size() < jobs_a_page) {
    pass_->workspaces.pop_back();
    pass_->after.reset();
    for (const DatastoreRecord& datastore : datastores)
      if (datastore.path.empty() && datastore.url.empty() &&
          (changed_.erase({workspace, datastore.name}) > 0 || pass_->is_full))
        add_datastore(workspace, datastore.name);
  } else {
    pass_->after = jobs.back().id;
  }
  for (const JobRecord& job : jobs) add_job(job);
  if (counter_.is_idle()) next_page();
}

}  // namespace slipway::api
