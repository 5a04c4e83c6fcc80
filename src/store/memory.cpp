#include "store/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "store/rest.h"

namespace slipway::store {
namespace {

class Memory final : public MemoryStore {
 public:
  void fail_saves(bool failing) override { failing_ = failing; }

  Result<void> save(const control::Changes& changes) override {
    if (auto room = probe(); !room) return room;
    for (const PoolRecord& pool : changes.pools) pools_[{pool.workspace, pool.name}] = pool;
    for (const auto& key : changes.pools_removed) {
      pools_.erase(key);
      moments_.erase(key);
      pool_usage_.erase(key);
      std::erase_if(shares_, [&](const auto& entry) {
        return std::pair(entry.second.workspace, entry.second.pool) == key;
      });
      samples_.erase(key);
    }
    for (const PoolMoment& moment : changes.moments) {
      auto& kept = moments_[{moment.workspace, moment.pool}];
      kept.push_back(moment);
      if (kept.size() > control::Kept::moments) kept.pop_front();
    }
    for (const PoolSample& sample : changes.samples) {
      auto& kept = samples_[{sample.workspace, sample.pool}];
      kept[sample.time] = sample;
      if (sample.count > 1) continue;
      std::erase_if(kept, [&](const auto& entry) {
        return entry.first + entry.second.every * entry.second.count < sample.time - control::Kept::samples;
      });
    }
    for (const PoolUsageRecord& usage : changes.pool_usage)
      pool_usage_[{usage.workspace, usage.pool}] = usage;
    for (const ShareRecord& share : changes.shares)
      shares_[{share.workspace, share.pool, share.user}] = share;
    for (const NodeRecord& node : changes.nodes) {
      nodes_[node.id] = node;
      node_last_ = std::max(node_last_, node.id.value());
    }
    for (const NodeId id : changes.nodes_removed) nodes_.erase(id);
    for (const control::NewJob& fresh : changes.jobs_new) {
      jobs_[fresh.job.id] = {fresh.job, fresh.spec, fresh.idempotency_key, {}};
      job_last_ = std::max(job_last_, fresh.job.id.value());
    }
    for (const JobRecord& job : changes.jobs) jobs_.at(job.id).record = job;
    for (const GroupRecord& group : changes.groups) jobs_.at(group.job).groups[group.group] = group;
    for (const TaskRecord& task : changes.tasks) tasks_[task.ref] = task;
    for (const AttemptRecord& attempt : changes.attempts) attempts_[attempt.key] = attempt;
    for (const auto& [id, usage] : changes.job_usage) job_usage_[id] = usage;
    for (const JobId id : changes.jobs_removed) {
      jobs_.erase(id);
      job_usage_.erase(id);
      std::erase_if(tasks_, [&](const auto& entry) { return entry.first.job == id; });
      std::erase_if(attempts_, [&](const auto& entry) { return entry.first.task.job == id; });
    }
    for (const FolderRecord& folder : changes.folders) folders_[{folder.workspace, folder.path}] = folder;
    for (const auto& key : changes.folders_removed) folders_.erase(key);
    for (const DatastoreRecord& store : changes.datastores)
      datastores_[{store.workspace, store.name}] = store;
    for (const auto& key : changes.datastores_removed) datastores_.erase(key);
    for (const TokenRecord& token : changes.tokens) tokens_[token.id] = token;
    for (const std::string& id : changes.tokens_removed) tokens_.erase(id);
    events_.insert(events_.end(), changes.events.begin(), changes.events.end());
    return {};
  }

  Result<void> probe() override {
    if (failing_) return fail(ErrorCode::unavailable, "the store is full", "free some space");
    return {};
  }

  Result<control::Loaded> load() override {
    control::Loaded loaded;
    for (const auto& [key, pool] : pools_) loaded.pools.push_back(pool);
    for (const auto& [id, node] : nodes_) loaded.nodes.push_back(node);
    for (const auto& [id, token] : tokens_) loaded.tokens.push_back(token);
    for (const auto& [key, samples] : samples_)
      for (const auto& [time, sample] : samples) loaded.samples.push_back(sample);
    for (const auto& [key, usage] : pool_usage_) loaded.pool_usage.push_back(usage);
    for (const auto& [key, share] : shares_) loaded.shares.push_back(share);
    for (const auto& [key, folder] : folders_) loaded.folders.push_back(folder);
    for (const auto& [key, store] : datastores_) loaded.datastores.push_back(store);
    loaded.job_last = job_last_;
    loaded.node_last = node_last_;
    loaded.event_last = events_.empty() ? 0 : events_.back().id;
    for (const auto& [id, job] : jobs_) {
      if (is_terminal(job.record.state)) continue;
      control::LiveJob live{job.record, job.spec.tasks, {}, {}, {}, {}};
      if (const auto usage = job_usage_.find(id); usage != job_usage_.end()) live.usage = usage->second;
      for (const auto& [place, group] : job.groups) live.groups.push_back(group);
      for (auto task = tasks_.lower_bound({id, 0, 0}); task != tasks_.end() && task->first.job == id;
           ++task) {
        if (is_terminal(task->second.state)) continue;
        live.live.push_back(task->second);
        if (is_placed(task->second.state))
          live.attempts.push_back(attempts_.at({task->first, task->second.attempts}));
      }
      loaded.jobs.push_back(std::move(live));
    }
    return loaded;
  }

  Result<TaskSpec> task_spec(JobId job, std::uint32_t group) override {
    const auto found = jobs_.find(job);
    if (found == jobs_.end() || group >= found->second.spec.tasks.size())
      return fail(ErrorCode::not_found, fmt::format("{} has no task number {}", to_string(job), group));
    return found->second.spec.tasks[group];
  }
  Result<JobSpec> job_spec(JobId job, std::uint32_t tasks_max) override {
    const auto found = jobs_.find(job);
    if (found == jobs_.end())
      return fail(ErrorCode::not_found, fmt::format("there is no {}", to_string(job)));
    JobSpec spec = found->second.spec;
    spec.name = found->second.record.name;
    if (spec.tasks.size() > tasks_max) spec.tasks.resize(tasks_max);
    return spec;
  }
  Result<std::optional<JobRecord>> job(JobId id) override {
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? std::nullopt : std::optional(found->second.record);
  }
  Result<std::optional<JobId>> job_by_key(const std::string& workspace, const std::string& key) override {
    for (const auto& [id, job] : jobs_)
      if (job.record.workspace == workspace && job.key == key && !key.empty()) return id;
    return std::nullopt;
  }
  Result<std::vector<JobRecord>> jobs(const control::JobQuery& query) override {
    std::vector<JobRecord> page;
    if (!query.tag.first.empty()) {
      for (auto job = query.after ? jobs_.upper_bound(*query.after) : jobs_.begin();
           job != jobs_.end() && page.size() < query.limit; ++job) {
        const JobRecord& record = job->second.record;
        const auto tag = record.tags.find(query.tag.first);
        if (record.workspace == query.workspace && tag != record.tags.end() &&
            tag->second == query.tag.second && (!query.state || record.state == *query.state))
          page.push_back(record);
      }
      return page;
    }
    for (auto job = jobs_.rbegin(); job != jobs_.rend() && page.size() < query.limit; ++job) {
      const JobRecord& record = job->second.record;
      if (record.workspace == query.workspace && (!query.before || record.id < *query.before) &&
          (!query.state || record.state == *query.state) && (query.name.empty() || record.name == query.name))
        page.push_back(record);
    }
    return page;
  }
  Result<std::vector<TaskRecord>> tasks(JobId id, const control::TaskQuery& query) override {
    std::vector<TaskRecord> page;
    const auto job = jobs_.find(id);
    if (job == jobs_.end()) return page;
    for (std::uint32_t g = query.after ? query.after->group : 0;
         g < job->second.spec.tasks.size() && page.size() < query.limit; ++g) {
      const GroupRange range = range_of(job->second, g);
      const std::uint32_t from = query.after && query.after->group == g ? query.after->index + 1 : 0;
      for (auto task = tasks_.lower_bound({id, g, from}); task != tasks_.end() && task->first.job == id &&
                                                          task->first.group == g && page.size() < query.limit;
           ++task)
        if (!query.state || task->second.state == *query.state) page.push_back(task->second);
      append_rest(page, id, range, from, query);
    }
    return page;
  }
  Result<std::optional<TaskRecord>> task(JobId id, const std::string& name) override {
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
    std::vector<AttemptRecord> all;
    for (auto attempt = attempts_.lower_bound({task, 0});
         attempt != attempts_.end() && attempt->first.task == task; ++attempt)
      all.push_back(attempt->second);
    return all;
  }
  Result<std::vector<AttemptRecord>> job_attempts(JobId job, const std::optional<AttemptKey>& after,
                                                  std::uint32_t limit) override {
    std::vector<AttemptRecord> page;
    for (auto attempt = attempts_.upper_bound(after.value_or(AttemptKey{{job, 0, 0}, 0}));
         attempt != attempts_.end() && attempt->first.task.job == job && page.size() < limit; ++attempt)
      page.push_back(attempt->second);
    return page;
  }
  Result<std::vector<EventRecord>> events(const control::EventQuery& query) override {
    std::vector<EventRecord> page;
    for (const EventRecord& event : events_)
      if (event.id > query.after && event.workspace == query.workspace &&
          (!query.job || event.job == query.job) && page.size() < query.limit)
        page.push_back(event);
    return page;
  }
  Result<std::vector<PoolMoment>> pool_history(const std::string& workspace, const std::string& pool,
                                               std::uint32_t limit) override {
    const auto found = moments_.find({workspace, pool});
    if (found == moments_.end()) return std::vector<PoolMoment>{};
    const auto& kept = found->second;
    const auto skipped = static_cast<std::ptrdiff_t>(kept.size() - std::min<std::size_t>(kept.size(), limit));
    return std::vector<PoolMoment>(kept.begin() + skipped, kept.end());
  }
  Result<UsageMeter> job_usage(JobId id) override {
    const auto found = job_usage_.find(id);
    return found == job_usage_.end() ? UsageMeter{} : found->second;
  }
  Result<std::vector<std::string>> sources() override {
    std::vector<std::string> all;
    for (const auto& [id, job] : jobs_)
      if (!job.record.source.empty() && std::find(all.begin(), all.end(), job.record.source) == all.end())
        all.push_back(job.record.source);
    return all;
  }
  Result<std::vector<std::pair<JobState, std::uint64_t>>> job_counts(const std::string& workspace) override {
    std::map<JobState, std::uint64_t> counts;
    for (const auto& [id, job] : jobs_)
      if (job.record.workspace == workspace) ++counts[job.record.state];
    return std::vector<std::pair<JobState, std::uint64_t>>(counts.begin(), counts.end());
  }

 private:
  struct StoredJob {
    JobRecord record;
    JobSpec spec;
    std::string key;
    std::map<std::uint32_t, GroupRecord> groups;
  };

  static GroupRange range_of(const StoredJob& job, std::uint32_t g) {
    const TaskSpec& spec = job.spec.tasks[g];
    const auto moved = job.groups.find(g);
    if (moved == job.groups.end())
      return {g, spec.count, 0, spec.depends_on.empty() ? TaskState::queued : TaskState::waiting, spec.name};
    return {g, spec.count, moved->second.next, moved->second.rest, spec.name};
  }

  bool failing_ = false;
  std::map<std::pair<std::string, std::string>, PoolRecord> pools_;
  std::map<std::pair<std::string, std::string>, std::deque<PoolMoment>> moments_;
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
  std::vector<EventRecord> events_;
  std::uint64_t job_last_ = 0, node_last_ = 0;
};

}  // namespace

std::unique_ptr<MemoryStore> make_memory_store() { return std::make_unique<Memory>(); }

}  // namespace slipway::store
