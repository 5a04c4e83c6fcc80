#include "store/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "store/rest.h"

namespace slipway::store {
namespace {

// What was saved. Held for a whole read between begin() and end(), so that no read sees half a turn.
class Tables final : public control::ReadStore {
 public:
  Result<void> begin() override {
    mutex_.lock();
    return {};
  }
  void end() override { mutex_.unlock(); }

  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    if (found == jobs_.end() || group >= found->second.spec.tasks.size())
      return fail(ErrorCode::not_found, fmt::format("{} has no task number {}", to_string(job), group));
    return found->second.spec.tasks[group];
  }
  Result<JobSpec> job_spec(JobId job, std::uint32_t tasks_max) override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(job);
    if (found == jobs_.end())
      return fail(ErrorCode::not_found, fmt::format("there is no {}", to_string(job)));
    JobSpec spec = found->second.spec;
    spec.name = found->second.record.name;
    if (spec.tasks.size() > tasks_max) spec.tasks.resize(tasks_max);
    return spec;
  }
  Result<std::optional<JobRecord>> job(JobId id) override {
    const std::lock_guard lock(mutex_);
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? std::nullopt : std::optional(found->second.record);
  }
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, job] : jobs_)
      if (job.record.workspace == workspace && job.key == key && !key.empty()) return id;
    return std::nullopt;
  }
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override {
    const std::lock_guard lock(mutex_);
    std::vector<JobRecord> page;
    const auto take = [&](const JobRecord& record) {
      const bool has_tags = std::all_of(query.tags.begin(), query.tags.end(), [&](const auto& tag) {
        const auto found = record.tags.find(tag.first);
        return found != record.tags.end() && found->second == tag.second;
      });
      if (has_tags && record.workspace == query.workspace && (!query.state || record.state == *query.state) &&
          (query.name.empty() || record.name == query.name) &&
          (query.pool.empty() || record.pool == query.pool) &&
          (query.user.empty() || record.submitted_by == query.user))
        page.push_back(record);
      return page.size() < query.limit;
    };
    if (query.after) {
      for (auto job = jobs_.upper_bound(*query.after); job != jobs_.end() && take(job->second.record);) ++job;
      return page;
    }
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job)
      if ((!query.before || job->first < *query.before) && !take(job->second.record)) break;
    return page;
  }
  Result<std::vector<TaskView>> tasks(JobId id, const control::TaskQuery& query) override {
    const std::lock_guard lock(mutex_);
    std::vector<TaskView> page;
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) return page;
    for (std::uint32_t g = query.after ? query.after->group : 0;
         g < job->second.spec.tasks.size() && page.size() < query.limit; ++g) {
      const GroupRange range = range_of(job->second, g);
      const std::uint32_t from = query.after && query.after->group == g ? query.after->index + 1 : 0;
      for (auto task = tasks_.lower_bound({id, g, from}); task != tasks_.end() && task->first.job == id &&
                                                          task->first.group == g && page.size() < query.limit;
           ++task)
        if (!query.state || task->second.state == *query.state) page.push_back(view_of(task->second));
      append_rest(page, id, range, from, query);
    }
    return page;
  }
  Result<std::optional<TaskRecord>> task(JobId id, const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) return std::nullopt;
    const TaskName wanted = parse_task_name(name);
    for (std::uint32_t g = 0; g < job->second.spec.tasks.size(); ++g) {
      const GroupRange range = range_of(job->second, g);
      if (range.name != wanted.group || range.count.has_value() != wanted.index.has_value() ||
          wanted.index.value_or(0) >= range.count.value_or(1))
        continue;
      const std::uint32_t index = wanted.index.value_or(0);
      if (index >= range.next) return rest_task(id, range, index);
      return tasks_.at({id, g, index});
    }
    return std::nullopt;
  }
  Result<std::vector<AttemptRecord>> attempts(const TaskRef& task) override {
    const std::lock_guard lock(mutex_);
    std::vector<AttemptRecord> all;
    for (auto attempt = attempts_.lower_bound({task, 0});
         attempt != attempts_.end() && attempt->first.task == task; ++attempt)
      all.push_back(attempt->second);
    return all;
  }
  Result<std::vector<AttemptRecord>> job_attempts(JobId job, const std::optional<AttemptKey>& after,
                                                  std::uint32_t limit) override {
    const std::lock_guard lock(mutex_);
    std::vector<AttemptRecord> page;
    for (auto attempt = attempts_.upper_bound(after.value_or(AttemptKey{{job, 0, 0}, 0}));
         attempt != attempts_.end() && attempt->first.task.job == job && page.size() < limit; ++attempt)
      page.push_back(attempt->second);
    return page;
  }
  Result<std::vector<EventRecord>> events(const control::EventQuery& query) override {
    const std::lock_guard lock(mutex_);
    std::vector<EventRecord> page;
    for (const EventRecord& event : events_)
      if (event.id > query.after && query.takes(event) && (query.is_newest || page.size() < query.limit))
        page.push_back(event);
    if (page.size() > query.limit) page.erase(page.begin(), page.end() - query.limit);
    return page;
  }
  Result<std::vector<PoolRecord>> deleted_pools(const std::string& workspace) override {
    const std::lock_guard lock(mutex_);
    std::vector<PoolRecord> found;
    for (auto pool = deleted_pools_.rbegin(); pool != deleted_pools_.rend(); ++pool)
      if (pool->workspace == workspace && !pools_.contains({workspace, pool->name})) found.push_back(*pool);
    return found;
  }
  Result<std::vector<PoolHistoryEntry>> pool_history(const std::string& workspace, const std::string& pool,
                                                     std::uint32_t limit) override {
    const std::lock_guard lock(mutex_);
    const auto found = pool_history_.find({workspace, pool});
    if (found == pool_history_.end()) return std::vector<PoolHistoryEntry>{};
    const auto& kept = found->second;
    const auto skipped = static_cast<std::ptrdiff_t>(kept.size() - std::min<std::size_t>(kept.size(), limit));
    return std::vector<PoolHistoryEntry>(kept.begin() + skipped, kept.end());
  }
  Result<UsageMeter> job_usage(JobId id) override {
    const std::lock_guard lock(mutex_);
    const auto found = job_usage_.find(id);
    return found == job_usage_.end() ? UsageMeter{} : found->second;
  }
  Result<std::vector<std::string>> sources() override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [id, job] : jobs_)
      if (!job.record.source.empty() && std::find(all.begin(), all.end(), job.record.source) == all.end())
        all.push_back(job.record.source);
    return all;
  }
  Result<std::vector<std::pair<std::string, std::string>>> sources_of(const std::string& workspace) override {
    const std::lock_guard lock(mutex_);
    std::set<std::pair<std::string, std::string>> all;
    for (const auto& [id, job] : jobs_)
      if (job.record.workspace == workspace && !job.record.source.empty())
        all.emplace(job.record.submitted_by, job.record.source);
    return std::vector(all.begin(), all.end());
  }
  Result<std::vector<DiskUse>> disk_of_code(const std::string& workspace) override {
    const std::lock_guard lock(mutex_);
    std::vector<DiskUse> found;
    for (const auto& [thing, bytes] : disk_)
      if (thing.first.workspace == workspace && thing.second.starts_with("code/"))
        found.push_back({thing.first, thing.second, bytes});
    return found;
  }
  Result<std::vector<std::pair<JobState, std::uint64_t>>> job_counts(const std::string& workspace) override {
    const std::lock_guard lock(mutex_);
    std::map<JobState, std::uint64_t> counts;
    for (const auto& [id, job] : jobs_)
      if (job.record.workspace == workspace) ++counts[job.record.state];
    return std::vector<std::pair<JobState, std::uint64_t>>(counts.begin(), counts.end());
  }

  Result<std::optional<JobRecord>> job_by_tag(const std::string& workspace, const std::string& name,
                                              const std::string& value) override {
    const std::lock_guard lock(mutex_);
    for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
      const JobRecord& record = job->second.record;
      const auto tag = record.tags.find(name);
      if (record.workspace == workspace && tag != record.tags.end() && tag->second == value) return record;
    }
    return std::nullopt;
  }
  Result<std::map<std::uint32_t, TaskSpec>> task_specs(JobId id, std::uint32_t first,
                                                       std::uint32_t last) override {
    const std::lock_guard lock(mutex_);
    std::map<std::uint32_t, TaskSpec> specs;
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) return specs;
    for (auto attempt = attempts_.lower_bound({{id, first, 0}, 0});
         attempt != attempts_.end() && attempt->first.task.job == id && attempt->first.task.group <= last;
         ++attempt)
      specs.try_emplace(attempt->first.task.group, job->second.spec.tasks[attempt->first.task.group]);
    return specs;
  }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::vector<AttemptRecord>> all;
    for (const TaskRef& task : tasks) all.push_back(*attempts(task));
    return all;
  }
  Result<std::optional<FolderRecord>> folder(const std::string& workspace, const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto found = folders_.find({workspace, path});
    return found == folders_.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::vector<FolderRecord>> folders(const std::string& workspace,
                                            const std::string& prefix) override {
    const std::lock_guard lock(mutex_);
    std::vector<FolderRecord> found;
    for (const auto& [key, folder] : folders_)
      if (key.first == workspace && key.second.starts_with(prefix)) found.push_back(folder);
    return found;
  }
  Result<std::optional<DatastoreRecord>> datastore(const std::string& workspace,
                                                   const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto found = datastores_.find({workspace, name});
    return found == datastores_.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::vector<UserRecord>> users() override {
    const std::lock_guard lock(mutex_);
    std::vector<UserRecord> all;
    for (const auto& [name, user] : users_) all.push_back(user);
    return all;
  }
  Result<std::optional<UserRecord>> user(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(name);
    return found == users_.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::vector<MemberRecord>> members() override {
    const std::lock_guard lock(mutex_);
    std::vector<MemberRecord> all;
    for (const auto& [key, member] : members_) all.push_back(member);
    return all;
  }
  Result<std::vector<DatastoreRecord>> datastores(const std::string& workspace) override {
    const std::lock_guard lock(mutex_);
    std::vector<DatastoreRecord> found;
    for (const auto& [key, store] : datastores_)
      if (key.first == workspace) found.push_back(store);
    return found;
  }
  Result<std::vector<SecretRecord>> secrets(const std::string& workspace) override {
    const std::lock_guard lock(mutex_);
    std::vector<SecretRecord> found;
    for (const auto& [key, secret] : secrets_)
      if (key.workspace == workspace) found.push_back(secret);
    std::stable_sort(found.begin(), found.end(), [](const SecretRecord& a, const SecretRecord& b) {
      return std::pair(a.key.name, a.key.user) < std::pair(b.key.name, b.key.user);
    });
    return found;
  }

  struct StoredJob {
    JobRecord record;
    JobSpec spec;
    std::string key;
    std::map<std::uint32_t, GroupRecord> groups;
  };

  TaskView view_of(const TaskRecord& task) const {
    const auto attempt = attempts_.find({task.ref, task.attempts});
    return {task, attempt == attempts_.end() ? std::vector<std::string>() : attempt->second.node_names()};
  }

  static GroupRange range_of(const StoredJob& job, std::uint32_t g) {
    const TaskSpec& spec = job.spec.tasks[g];
    const auto moved = job.groups.find(g);
    if (moved == job.groups.end())
      return {g,         spec.count, 0, spec.has_dependencies() ? TaskState::waiting : TaskState::queued,
              spec.name, {}};
    return {g, spec.count, moved->second.next, moved->second.rest, spec.name, moved->second.rest_reason};
  }

  std::recursive_mutex mutex_;
  std::map<std::pair<std::string, std::string>, PoolRecord> pools_;
  std::deque<PoolRecord> deleted_pools_;  // the last deleted at the end
  std::map<std::pair<std::string, std::string>, std::deque<PoolHistoryEntry>> pool_history_;
  std::map<std::pair<std::string, std::string>, std::map<TimePoint, PoolSample>> samples_;
  std::map<std::tuple<std::string, std::string, std::string>, ShareRecord> shares_;
  std::map<std::pair<std::string, std::string>, PoolUsageRecord> pool_usage_;
  std::map<JobId, UsageMeter> job_usage_;
  std::map<NodeId, NodeRecord> nodes_;
  std::map<JobId, StoredJob> jobs_;
  std::map<TaskRef, TaskRecord> tasks_;
  std::map<AttemptKey, AttemptRecord> attempts_;
  std::map<std::string, TokenRecord> tokens_;
  std::map<std::pair<std::string, std::string>, FolderRecord> folders_;
  std::map<std::pair<std::string, std::string>, DatastoreRecord> datastores_;
  std::map<SecretKey, SecretRecord> secrets_;
  std::map<std::string, UserRecord> users_;
  std::map<std::pair<std::string, std::string>, MemberRecord> members_;
  std::map<QuotaKey, QuotaRecord> quotas_;
  std::map<std::pair<QuotaKey, std::string>, std::uint64_t> disk_;
  std::set<std::string> removals_;
  std::set<std::pair<NodeId, std::string>> node_removals_;
  std::vector<EventRecord> events_;
  std::uint64_t job_last_ = 0, node_last_ = 0;
};

class Memory final : public MemoryStore {
 public:
  void fail_saves(bool failing) override { failing_ = failing; }

  Result<void> save(const control::Changes& changes) override {
    if (auto ready = probe(); !ready) return ready;
    const std::lock_guard lock(tables_->mutex_);
    for (const PoolRecord& pool : changes.pools) tables_->pools_[{pool.workspace, pool.name}] = pool;
    for (const auto& key : changes.pools_removed) {
      auto& deleted = tables_->deleted_pools_;
      std::erase_if(deleted,
                    [&](const PoolRecord& pool) { return std::pair(pool.workspace, pool.name) == key; });
      if (const auto pool = tables_->pools_.find(key); pool != tables_->pools_.end())
        deleted.push_back(pool->second);
      if (deleted.size() > control::Kept::deleted_pools) deleted.pop_front();
      tables_->pools_.erase(key);
      tables_->pool_history_.erase(key);
      tables_->pool_usage_.erase(key);
      std::erase_if(tables_->shares_, [&](const auto& entry) {
        return std::pair(entry.second.workspace, entry.second.pool) == key;
      });
      tables_->samples_.erase(key);
    }
    for (const PoolHistoryEntry& entry : changes.pool_history) {
      auto& kept = tables_->pool_history_[{entry.workspace, entry.pool}];
      kept.push_back(entry);
      if (kept.size() > control::Kept::pool_history) kept.pop_front();
    }
    for (const PoolSample& sample : changes.samples) {
      auto& kept = tables_->samples_[{sample.workspace, sample.pool}];
      kept[sample.time] = sample;
      if (sample.count > 1) continue;
      std::erase_if(kept, [&](const auto& entry) {
        return entry.first + entry.second.every * entry.second.count < sample.time - control::Kept::samples;
      });
    }
    for (const PoolUsageRecord& usage : changes.pool_usage)
      tables_->pool_usage_[{usage.workspace, usage.pool}] = usage;
    for (const ShareRecord& share : changes.shares)
      tables_->shares_[{share.workspace, share.pool, share.user}] = share;
    for (const NodeRecord& node : changes.nodes) {
      tables_->nodes_[node.id] = node;
      tables_->node_last_ = std::max(tables_->node_last_, node.id.value());
    }
    for (const NodeId id : changes.nodes_removed) tables_->nodes_.erase(id);
    for (const control::NewJob& fresh : changes.jobs_new) {
      tables_->jobs_[fresh.job.id] = {fresh.job, fresh.spec, fresh.idempotency_key, {}};
      tables_->job_last_ = std::max(tables_->job_last_, fresh.job.id.value());
    }
    for (const JobRecord& job : changes.jobs) tables_->jobs_.at(job.id).record = job;
    for (const GroupRecord& group : changes.groups) tables_->jobs_.at(group.job).groups[group.group] = group;
    for (const TaskRecord& task : changes.tasks) tables_->tasks_[task.ref] = task;
    for (const AttemptRecord& attempt : changes.attempts) tables_->attempts_[attempt.key] = attempt;
    for (const auto& [id, usage] : changes.job_usage) tables_->job_usage_[id] = usage;
    for (const JobId id : changes.jobs_removed) {
      tables_->jobs_.erase(id);
      tables_->job_usage_.erase(id);
      std::erase_if(tables_->tasks_, [&](const auto& entry) { return entry.first.job == id; });
      std::erase_if(tables_->attempts_, [&](const auto& entry) { return entry.first.task.job == id; });
    }
    for (const FolderRecord& folder : changes.folders)
      tables_->folders_[{folder.workspace, folder.path}] = folder;
    for (const auto& key : changes.folders_removed) tables_->folders_.erase(key);
    for (const DatastoreRecord& store : changes.datastores)
      tables_->datastores_[{store.workspace, store.name}] = store;
    for (const auto& key : changes.datastores_removed) tables_->datastores_.erase(key);
    for (const QuotaRecord& quota : changes.quotas) {
      if (quota.limits.is_empty())
        tables_->quotas_.erase(quota.key);
      else
        tables_->quotas_[quota.key] = quota;
    }
    for (const DiskUse& use : changes.disk) {
      if (use.bytes == 0)
        tables_->disk_.erase({use.key, use.thing});
      else
        tables_->disk_[{use.key, use.thing}] = use.bytes;
    }
    for (const SecretRecord& secret : changes.secrets) tables_->secrets_[secret.key] = secret;
    for (const SecretKey& key : changes.secrets_removed) tables_->secrets_.erase(key);
    for (const UserRecord& user : changes.users) tables_->users_[user.name] = user;
    for (const std::string& name : changes.users_removed) tables_->users_.erase(name);
    for (const MemberRecord& member : changes.members)
      tables_->members_[{member.workspace, member.user}] = member;
    for (const auto& key : changes.members_removed) tables_->members_.erase(key);
    for (const std::string& folder : changes.removals) tables_->removals_.insert(folder);
    for (const std::string& folder : changes.removals_done) tables_->removals_.erase(folder);
    for (const auto& one : changes.node_removals) tables_->node_removals_.insert(one);
    for (const auto& one : changes.node_removals_done) tables_->node_removals_.erase(one);
    for (const NodeId id : changes.nodes_removed)
      std::erase_if(tables_->node_removals_, [&](const auto& one) { return one.first == id; });
    for (const TokenRecord& token : changes.tokens) tables_->tokens_[token.id] = token;
    for (const std::string& id : changes.tokens_removed) tables_->tokens_.erase(id);
    tables_->events_.insert(tables_->events_.end(), changes.events.begin(), changes.events.end());
    return {};
  }

  Result<void> probe() override {
    if (failing_) return fail(ErrorCode::unavailable, "the store is full", "free some space");
    return {};
  }

  Result<control::Loaded> load() override {
    const std::lock_guard lock(tables_->mutex_);
    control::Loaded loaded;
    for (const auto& [key, pool] : tables_->pools_) loaded.pools.push_back(pool);
    for (const auto& [id, node] : tables_->nodes_) loaded.nodes.push_back(node);
    for (const auto& [id, token] : tables_->tokens_) loaded.tokens.push_back(token);
    for (const auto& [key, samples] : tables_->samples_)
      for (const auto& [time, sample] : samples) loaded.samples.push_back(sample);
    for (const auto& [key, usage] : tables_->pool_usage_) loaded.pool_usage.push_back(usage);
    for (const auto& [key, share] : tables_->shares_) loaded.shares.push_back(share);
    for (const auto& [key, folder] : tables_->folders_) loaded.folders.push_back(folder);
    for (const auto& [key, store] : tables_->datastores_) loaded.datastores.push_back(store);
    for (const auto& [key, quota] : tables_->quotas_) loaded.quotas.push_back(quota);
    for (const auto& [thing, bytes] : tables_->disk_) {
      if (loaded.disk.empty() || loaded.disk.back().key != thing.first)
        loaded.disk.push_back({thing.first, {}, 0});
      loaded.disk.back().bytes += bytes;
    }
    for (const auto& [key, secret] : tables_->secrets_) loaded.secrets.push_back(secret);
    for (const auto& [name, user] : tables_->users_) loaded.users.push_back(user);
    for (const auto& [key, member] : tables_->members_) loaded.members.push_back(member);
    loaded.removals.assign(tables_->removals_.begin(), tables_->removals_.end());
    loaded.node_removals.assign(tables_->node_removals_.begin(), tables_->node_removals_.end());
    loaded.job_last = tables_->job_last_;
    loaded.node_last = tables_->node_last_;
    loaded.event_last = tables_->events_.empty() ? 0 : tables_->events_.back().id;
    if (!tables_->events_.empty()) loaded.recorded_until = tables_->events_.back().time;
    for (const auto& [id, job] : tables_->jobs_) {
      if (!is_terminal(job.record.state)) loaded.jobs.push_back(*live_job(job.record));
    }
    return loaded;
  }
  Result<control::LiveJob> live_job(const JobRecord& record) override {
    const std::lock_guard lock(tables_->mutex_);
    const Tables::StoredJob& job = tables_->jobs_.at(record.id);
    control::LiveJob live{record, job.spec.tasks, {}, {}, {}, {}};
    if (const auto usage = tables_->job_usage_.find(record.id); usage != tables_->job_usage_.end())
      live.usage = usage->second;
    for (const auto& [place, group] : job.groups) live.groups.push_back(group);
    for (auto task = tables_->tasks_.lower_bound({record.id, 0, 0});
         task != tables_->tasks_.end() && task->first.job == record.id; ++task) {
      if (is_terminal(task->second.state)) continue;
      live.live.push_back(task->second);
      if (is_placed(task->second.state))
        live.attempts.push_back(tables_->attempts_.at({task->first, task->second.attempts}));
    }
    return live;
  }
  Result<std::vector<JobRecord>> expired_jobs(const control::Retention& retain, TimePoint now,
                                              std::uint32_t limit) override {
    const std::lock_guard lock(tables_->mutex_);
    std::vector<JobRecord> found;
    for (const auto& [id, job] : tables_->jobs_) {
      const JobRecord& record = job.record;
      const auto kept = record.retain ? record.retain : retain.of(record.workspace);
      if (!is_terminal(record.state) || record.is_pinned || !kept || *record.ended_at + *kept > now) continue;
      found.push_back(record);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const JobRecord& a, const JobRecord& b) { return *a.ended_at < *b.ended_at; });
    if (found.size() > limit) found.resize(limit);
    return found;
  }
  Result<std::vector<TaskRecord>> unsuccessful_tasks(JobId id, std::uint32_t limit) override {
    const std::lock_guard lock(tables_->mutex_);
    std::vector<TaskRecord> found;
    for (auto task = tables_->tasks_.lower_bound({id, 0, 0});
         task != tables_->tasks_.end() && task->first.job == id && found.size() < limit; ++task)
      if (is_terminal(task->second.state) && task->second.state != TaskState::succeeded)
        found.push_back(task->second);
    return found;
  }

  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override {
    return tables_->task_spec(job, group);
  }
  Result<std::optional<JobRecord>> job(JobId job) override { return tables_->job(job); }
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override {
    return tables_->job_by_key(workspace, key);
  }
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override {
    return tables_->jobs(query);
  }
  Result<std::vector<std::vector<AttemptRecord>>> attempts_of(const std::vector<TaskRef>& tasks) override {
    return tables_->attempts_of(tasks);
  }
  Result<UsageMeter> job_usage(JobId job) override { return tables_->job_usage(job); }
  Result<std::uint64_t> disk_of(const QuotaKey& key, const std::string& thing) override {
    const std::lock_guard lock(tables_->mutex_);
    const auto found = tables_->disk_.find({key, thing});
    return found == tables_->disk_.end() ? 0 : found->second;
  }

  control::ReadStore& reads() override { return *tables_; }
  Result<std::shared_ptr<control::ReadStore>> open_reader() override { return tables_; }

 private:
  std::shared_ptr<Tables> tables_ = std::make_shared<Tables>();
  bool failing_ = false;
};

}  // namespace

std::unique_ptr<MemoryStore> make_memory_store() { return std::make_unique<Memory>(); }

}  // namespace slipway::store
