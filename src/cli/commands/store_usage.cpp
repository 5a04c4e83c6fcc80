// What the data folder of a service on this machine takes of its disk, and what a rule would free.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/folder_size.h"
#include "base/quantity.h"
#include "cli/commands/commands.h"
#include "domain/layout.h"

namespace slipway::cli {
namespace {

struct UsageOptions {
  std::optional<Duration> retain;
};

struct Part {
  std::string what;
  std::uint64_t bytes = 0;
  std::uint64_t things = 0;  // jobs, datastores; 0: it is not counted so
};

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    const auto bytes = std::filesystem::file_size(path, error);
    return error ? 0 : bytes;
  }
  constexpr std::size_t step = 100'000;
  FolderSize folder(path);
  while (folder.count_some(step)) {
  }
  return folder.bytes();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// By where it lies (domain/layout.h); what has no part of its own is `other`. A part for each workspace's
// jobs.
std::vector<Part> look(const std::string& data) {
  Part database{"database", 0, 0}, audit{"audit log", 0, 0}, code{"code of jobs", 0, 0},
      nodes{"local nodes", 0, 0}, other{"other", 0, 0};
  std::vector<Part> parts;
  for (const std::string& name : names_in(data)) {
    const std::string path = data + "/" + name;
    if (name == "workspaces") continue;
    Part& part = name.starts_with("slipway.db") ? database
                 : name.starts_with("audit.")   ? audit
                 : name == "blobs"              ? code
                 : name.starts_with("node")     ? nodes
                                                : other;
    part.bytes += size_of(path);
  }
  for (const std::string& workspace : names_in(data + "/workspaces")) {
    const std::string folder = data + "/" + workspace_folder(workspace);
    for (const std::string& kind : names_in(folder)) {
      if (kind != "jobs" && kind != "datastores") {
        other.bytes += size_of(folder + "/" + kind);
        continue;
      }
      Part part{fmt::format("{} of {}", kind, workspace), 0, 0};
      for (const std::string& name : names_in(folder + "/" + kind)) {
        part.bytes += size_of(folder + "/" + kind + "/" + name);
        ++part.things;
      }
      parts.push_back(std::move(part));
    }
  }
  for (Part* part : {&database, &audit, &code, &nodes, &other})
    if (part->bytes > 0) parts.push_back(std::move(*part));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  return parts;
}

// Jobs of the caller's workspace that have ended before `retain`, and are not pinned nor have a rule of their
// own.
Outcome<Part> would_free(Context& context, const std::string& data, Duration retain) {
  Part freed{"would be freed", 0, 0};
  const TimePoint before = context.now() - retain;
  const auto listed = context.service().pages(resource({"jobs"}), [&](const std::vector<Value>& jobs) {
    for (const Value& job : jobs) {
      const std::optional<TimePoint> ended = job.time_at("ended_at");
      const auto id = parse_job_id(job.text_at("id"));
      if (!ended || *ended > before || !id || job.is_true_at("pinned") || !job.at("retain").is_null())
        continue;
      ++freed.things;
      freed.bytes += size_of(data + "/" + job_folder(job.text_at("workspace"), *id));
    }
    return true;
  });
  if (!listed) return give_up(listed);
  return freed;
}

Value value_of(const Part& part) {
  return {{"what", part.what}, {"bytes", part.bytes}, {"things", part.things}};
}

Outcome<int> usage(Context& context, const UsageOptions& options) {
  const std::string data = data_folder(context.settings());
  std::error_code error;
  if (!std::filesystem::is_directory(data, error))
    return refuse(fmt::format("there is no data folder {}", data),
                  error ? error.message() : "it is not a folder",
                  "run it on the machine of the service, with its --data");
  const std::vector<Part> parts = look(data);
  std::optional<Part> freed;
  if (options.retain) {
    Outcome<Part> found = would_free(context, data, *options.retain);
    if (!found) return give_up(found);
    freed = std::move(*found);
  }
  Value value{{"data", data}, {"items", Value::list()}};
  std::uint64_t total = 0;
  for (const Part& part : parts) {
    value["items"].items.push_back(value_of(part));
    total += part.bytes;
  }
  value["bytes"] = total;
  if (freed) value["would_free"] = value_of(*freed);
  return print(context, value, std::to_string(total), [&] {
    Table table({{"WHAT"}, {"SIZE", true}, {"NUMBER", true}}, render_options(STDOUT_FILENO));
    for (const Part& part : parts)
      table.add({part.what, format_bytes(part.bytes), part.things > 0 ? std::to_string(part.things) : ""});
    table.add({"all", format_bytes(total), ""});
    std::string text = table.format();
    if (freed)
      text += fmt::format("--retain {} would delete {} with {} of files\n", format_duration(*options.retain),
                          plural(freed->things, "job"), format_bytes(freed->bytes));
    return text;
  });
}

}  // namespace

void add_store_usage(Command& store, Context& context) {
  auto options = std::make_shared<UsageOptions>();
  store
      .verb("usage", "Show what takes the disk, and what a rule would free",
            "slipway store usage --retain 30d")
      .duration("--retain TIME", options->retain,
                "which jobs of the workspace up --retain would delete (asks the service)")
      .runs([&context, options] { return usage(context, *options); });
}

}  // namespace slipway::cli
