#include "compat/batchai/render.h"

#include <fmt/format.h>

#include <algorithm>

#include "compat/batchai/body.h"
#include "compat/batchai/layout.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {
namespace {

Value envelope(Noun noun, const ResourceId& resource) {
  const std::string& name = noun == Noun::workspace    ? resource.workspace
                            : noun == Noun::experiment ? resource.experiment
                                                       : resource.name;
  return object_value({{"id", text_value(id_of(noun, resource))},
                       {"name", text_value(name)},
                       {"type", text_value(std::string(type_of(noun)))}});
}

void add_provisioning(Value& properties, TimePoint created, TimePoint changed, bool is_deleting) {
  set(properties, "creationTime", time_value(created));
  set(properties, "provisioningState", text_value(is_deleting ? "deleting" : "succeeded"));
  set(properties, "provisioningStateTransitionTime", time_value(is_deleting ? changed : created));
}

using Details = std::vector<std::pair<std::string, std::string>>;
Value error_value(const std::string& code, const std::string& message, const Details& details = {}) {
  Value error = object_value({{"code", text_value(code)}, {"message", text_value(message)}});
  Value list = list_value();
  for (const auto& [name, value] : details)
    if (!value.empty())
      list.items.push_back(object_value({{"name", text_value(name)}, {"value", text_value(value)}}));
  if (!list.items.empty()) set(error, "details", std::move(list));
  return error;
}

}  // namespace

Value render_workspace(const FolderRecord& folder, bool is_deleting) {
  Value value =
      envelope(Noun::workspace, parse_resource_id(Noun::workspace, tag_of(folder.tags, tag::resource_id)));
  set(value, "location", text_value(tag_of(folder.tags, tag::location)));
  Value tags = object_value();
  for (const auto& [name, text] : folder.tags)
    if (name.starts_with(tag::user)) set(tags, name.substr(4), text_value(text));
  if (!tags.fields.empty()) set(value, "tags", std::move(tags));
  Value properties = object_value();
  add_provisioning(properties, folder.created_at, folder.changed_at, is_deleting);
  set(value, "properties", std::move(properties));
  return value;
}

Value render_experiment(const FolderRecord& folder, bool is_deleting) {
  Value value =
      envelope(Noun::experiment, parse_resource_id(Noun::experiment, tag_of(folder.tags, tag::resource_id)));
  Value properties = object_value();
  add_provisioning(properties, folder.created_at, folder.changed_at, is_deleting);
  set(value, "properties", std::move(properties));
  return value;
}

Value render_file_server(const FolderRecord& folder, bool is_deleting) {
  Value value = envelope(Noun::file_server,
                         parse_resource_id(Noun::file_server, tag_of(folder.tags, tag::resource_id)));
  const Value body = parse_stored(tag_of(folder.tags, tag::body));
  const Value* stored = body.find("properties");
  Value properties = stored ? *stored : object_value();
  const std::string address = tag_of(folder.tags, tag::address);
  set(properties, "mountSettings",
      object_value({{"mountPoint", text_value("/data")},
                    {"fileServerPublicIP", text_value(address)},
                    {"fileServerInternalIP", text_value(address)}}));
  add_provisioning(properties, folder.created_at, folder.changed_at, is_deleting);
  set(value, "properties", std::move(properties));
  return value;
}

bool is_present(const NodeRecord& node) {
  return node.state != NodeState::gone && !(node.state == NodeState::joining && node.instance.empty());
}

Value render_cluster(const PoolView& view, const std::vector<NodeView>& nodes) {
  const PoolRecord& pool = view.pool;
  const ResourceId resource = parse_resource_id(Noun::cluster, tag_of(pool.tags, tag::resource_id));
  Value value = envelope(Noun::cluster, resource);
  const Value body = parse_stored(tag_of(pool.tags, tag::body));
  const Value* stored = body.find("properties");
  Value properties = stored ? *stored : object_value();
  if (Value* setup = properties.find("nodeSetup"))
    if (Value* task = setup->find("setupTask"))
      set(*task, "stdOutErrPathSuffix", text_value(cluster_segment(resource, tag_of(pool.tags, tag::uuid))));
  add_provisioning(properties, pool.created_at, pool.resize.since, pool.deleting);
  const bool resizing = pool.resize.state == ResizeState::resizing || pool.deleting;
  set(properties, "allocationState", text_value(resizing ? "resizing" : "steady"));
  set(properties, "allocationStateTransitionTime", time_value(std::max(pool.resize.since, pool.created_at)));
  std::int64_t idle = 0, running = 0, preparing = 0, unusable = 0, leaving = 0;
  Value errors = list_value();
  for (const ResizeError& error : pool.resize.errors)
    errors.items.push_back(error_value(error.code, error.text));
  for (const NodeView& one : nodes) {
    const NodeRecord& node = one.node;
    if (!is_present(node)) continue;
    if (node.leaving || node.state == NodeState::evicted) {
      ++leaving;
    } else if (node.state == NodeState::joining || node.state == NodeState::starting) {
      ++preparing;
    } else if (node.state == NodeState::start_failed || node.state == NodeState::lost) {
      ++unusable;
    } else if (!one.running.empty() || node.state == NodeState::busy) {
      ++running;
    } else {
      ++idle;
    }
    if (node.state == NodeState::start_failed)
      errors.items.push_back(error_value(
          "SetupTaskFailed", "node set-up task failed with non-zero exit code",
          {{"nodeId", node.name},
           {"exitCode", node.start.exit_code ? std::to_string(*node.start.exit_code) : ""},
           {"logPath",
            pool.start_task.logs.empty() ? "" : pool.start_task.logs + "/stderr-" + node.name + ".txt"},
           {"Info", node.start.detail},
           {"lastLines", node.start.last_lines}}));
    if (node.state == NodeState::lost)
      errors.items.push_back(error_value("NodeLost", node.reason, {{"nodeId", node.name}}));
  }
  set(properties, "currentNodeCount", number_value(idle + running + preparing + unusable + leaving));
  set(properties, "nodeStateCounts",
      object_value({{"idleNodeCount", number_value(idle)},
                    {"runningNodeCount", number_value(running)},
                    {"preparingNodeCount", number_value(preparing)},
                    {"unusableNodeCount", number_value(unusable)},
                    {"leavingNodeCount", number_value(leaving)}}));
  if (!errors.items.empty()) set(properties, "errors", std::move(errors));
  set(value, "properties", std::move(properties));
  return value;
}

std::string execution_state(const JobRecord& job) {
  if (job.state == JobState::succeeded) return "succeeded";
  if (is_terminal(job.state)) return "failed";
  if (job.state == JobState::stopping) return "terminating";
  return job.counts.active > 0 ? "running" : "queued";
}

namespace {

std::string node_of(const AttemptRecord* attempt) {
  return attempt ? fmt::format("{}", fmt::join(attempt->node_names(), ",")) : "";
}

// Whose volume a mount that failed was of, by the name of its datastore.
std::string mount_error(const std::string& detail) {
  if (detail.find("mount") == std::string::npos) return "";
  if (detail.find(".file.") != std::string::npos) return "AZFMountError";
  if (detail.find(".blob.") != std::string::npos) return "BFSMountError";
  if (detail.find("nfs.") != std::string::npos) return "NFSMountError";
  return "UnmanagedFileSystemMountError";
}

std::string_view mount_words(const std::string& code) {
  if (code == "AZFMountError") return "Unable to mount Azure File";
  if (code == "BFSMountError") return "unable to mount blob fuse file system";
  if (code == "NFSMountError") return "unable to mount the file server";
  return "unable to mount the unmanaged file system";
}

struct Ending {
  Value error;
  std::optional<int> exit_code;
};

Ending ending_of(const JobView& view, const Value& properties, const AttemptRecord* last) {
  const JobRecord& job = view.job;
  const EndReason end = job.end.value_or(last && last->end ? *last->end : EndReason::exited);
  std::optional<int> code = job.exit_code;
  if (!code && last) code = last->exit_code;
  if (!code && last && last->signal) code = 128 + *last->signal;
  const std::string detail = last ? last->detail : job.reason;
  const std::string lines = last ? last->last_lines : "";
  const std::string node = node_of(last);
  const std::string image = text_at(properties, "containerSettings.imageSourceRegistry.image");
  const std::string attempts = std::to_string(view.attempts.size());
  if (job.state == JobState::cancelled || end == EndReason::cancelled)
    return {error_value("JobTerminated", "The specified job has been terminated by the user"), std::nullopt};
  if (const std::string why = tag_of(job.tags, tag::no_engine); !why.empty())
    return {error_value("FailedStartingContainer", "unable to start docker container",
                        {{"imageName", image}, {"Info", why}}),
            code.value_or(1)};
  if (!image.empty() && end == EndReason::exited && code && *code >= 125 && *code <= 127)
    return {error_value("FailedStartingContainer", "unable to start docker container",
                        {{"imageName", image}, {"nodeId", node}, {"Info", lines.empty() ? detail : lines}}),
            code};
  switch (end) {
    case EndReason::preparation_failed:
      return {error_value(
                  "JobPreparationFailed", "Job preparation task failed with non-zero exit code",
                  {{"nodeId", node}, {"exitCode", code ? std::to_string(*code) : ""}, {"lastLines", lines}}),
              code.value_or(1)};
    case EndReason::timed_out:
      return {error_value("JobTimedOut", "job ran longer than maxWallClockTime",
                          {{"maxWallClockTime", text_at(properties, "constraints.maxWallClockTime")}}),
              std::nullopt};
    case EndReason::node_lost:
      return {error_value("JobNodesLost", "the nodes of the job were lost, and its retries are used up",
                          {{"nodeId", node}, {"attempts", attempts}, {"Info", detail}}),
              std::nullopt};
    case EndReason::evicted:
      // A pool that was made smaller with the option `terminate` says so; others took their nodes back.
      if (view.attempts.size() < 5)
        return {error_value("JobTerminated", "The specified job has been terminated by the user",
                            {{"Info", detail}}),
                std::nullopt};
      return {error_value("JobPreempted", "the job was pre-empted, and its retries are used up",
                          {{"nodeId", node}, {"attempts", attempts}, {"Info", detail}}),
              std::nullopt};
    case EndReason::start_failed:
      if (const std::string mount = mount_error(detail); !mount.empty())
        return {error_value(mount, std::string(mount_words(mount)), {{"Info", detail}, {"nodeId", node}}), 1};
      if (!image.empty())
        return {error_value("FailedStartingContainer", "unable to start docker container",
                            {{"imageName", image}, {"Info", detail}}),
                1};
      return {error_value("InternalError", detail, {{"nodeId", node}}), code.value_or(1)};
    default:
      return {error_value("JobFailed", "Job failed with non-zero exit code",
                          {{"nodeId", node},
                           {"exitCode", code ? std::to_string(*code) : ""},
                           {"Info", detail},
                           {"lastLines", lines}}),
              code.value_or(1)};
  }
}

// Adds what the service knows to what the user wrote.
void add_progress(Value& properties, const JobView& view, const ResourceId& resource) {
  const JobRecord& job = view.job;
  const AttemptRecord* last = view.attempts.empty() ? nullptr : &view.attempts.back();
  const std::string state = execution_state(job);
  const TimePoint started = last ? last->placed_at : job.ended_at.value_or(job.submitted_at);
  TimePoint changed = started;
  if (state == "queued") changed = last && last->ended_at ? *last->ended_at : job.submitted_at;
  if (is_terminal(job.state)) changed = job.ended_at.value_or(started);
  set(properties, "jobOutputDirectoryPathSegment",
      text_value(job_segment(resource, tag_of(job.tags, tag::uuid))));
  add_provisioning(properties, job.submitted_at, changed, view.is_deleting);
  set(properties, "executionState", text_value(state));
  set(properties, "executionStateTransitionTime", time_value(changed));
  if (state != "queued") {
    Value info = object_value({{"startTime", time_value(started)}});
    if (is_terminal(job.state)) {
      set(info, "endTime", time_value(std::max(started, job.ended_at.value_or(started))));
      if (state == "succeeded") {
        set(info, "exitCode", number_value(0));
      } else {
        Ending ending = ending_of(view, properties, last);
        if (ending.exit_code) set(info, "exitCode", number_value(*ending.exit_code));
        set(info, "errors", list_value({std::move(ending.error)}));
      }
    }
    set(properties, "executionInfo", std::move(info));
  }
}

// What stands in {"properties":{…}}, where that is all; empty otherwise.
std::string_view inside_properties(std::string_view stored) {
  constexpr std::string_view before = "{\"properties\":{", after = "}}";
  if (!stored.starts_with(before) || !stored.ends_with(after)) return {};
  stored.remove_prefix(before.size());
  stored.remove_suffix(after.size());
  return stored;
}

// The same as toolkit_of, of a body that was taken, without reading all of it.
const Toolkits* toolkit_in(std::string_view stored) {
  // A quote inside a text is written with a backslash before it: this can only be the end of a key.
  constexpr std::string_view end = "Settings\":{";
  for (std::size_t at = stored.find(end); at != std::string_view::npos; at = stored.find(end, at + 1)) {
    const std::size_t begin = stored.rfind('"', at) + 1;
    const std::string_view key = stored.substr(begin, at + end.find('"') - begin);
    for (const Toolkits& toolkit : toolkits())
      if (key == toolkit.settings) return &toolkit;
  }
  return nullptr;
}

}  // namespace

Value render_job(const JobView& view) {
  const JobRecord& job = view.job;
  const ResourceId resource = parse_resource_id(Noun::job, tag_of(job.tags, tag::resource_id));
  Value value = envelope(Noun::job, resource);
  Value body = parse_stored(tag_of(job.tags, tag::body));
  Value* stored = body.find("properties");
  Value properties = object_value();
  properties.fields.reserve(24);
  const Toolkits* toolkit = stored ? toolkit_of(*stored) : nullptr;
  if (stored)
    for (auto& [key, field] : stored->fields) {
      if (toolkit && key == toolkit->settings)
        properties.fields.emplace_back("toolType", text_value(toolkit->type));
      properties.fields.emplace_back(std::move(key), std::move(field));
    }
  add_progress(properties, view, resource);
  set(value, "properties", std::move(properties));
  return value;
}

std::string format_job(const JobView& view) {
  const auto body = view.job.tags.find(tag::body);
  const std::string_view stored =
      body == view.job.tags.end() ? std::string_view() : inside_properties(body->second);
  // The error of a failed job quotes its body.
  if (stored.empty() || execution_state(view.job) == "failed") return format(render_job(view));
  const ResourceId resource = parse_resource_id(Noun::job, tag_of(view.job.tags, tag::resource_id));
  Value added = object_value();
  added.fields.reserve(8);
  if (const Toolkits* toolkit = toolkit_in(stored)) set(added, "toolType", text_value(toolkit->type));
  add_progress(added, view, resource);
  std::string text = format(envelope(Noun::job, resource));
  text.back() = ',';
  text += "\"properties\":{";
  text += stored;
  text += ',';
  text += std::string_view(format(added)).substr(1);
  return text + "}";
}

Value render_login(const NodeRecord& node) {
  return object_value({{"nodeId", text_value(node.name)},
                       {"ipAddress", text_value(node.address.empty() ? node.host : node.address)},
                       {"port", number_value(22)}});
}

}  // namespace slipway::batchai
