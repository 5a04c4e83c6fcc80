// The states of all tasks of a job in few bytes, for those who draw them.
#include <fmt/format.h>

#include "api/api.h"
#include "api/find_task.h"
#include "control/find_job.h"
#include "wire/json.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

constexpr std::uint32_t states_max = 100'000;  // of one answer
constexpr std::uint32_t read_at_once = 1'000;

// One entry of a job's list of tasks, with the states of its tasks in their order: how many in a row are
// alike.
struct EntryStates {
  std::uint32_t group = 0;
  std::string first;  // name of the first task
  std::vector<std::pair<TaskState, std::uint32_t>> runs{};

  void add(TaskState state) {
    if (runs.empty() || runs.back().first != state)
      runs.emplace_back(state, 1);
    else
      ++runs.back().second;
  }
  std::string json() const {
    std::string states;
    for (const auto& [state, count] : runs)
      states += fmt::format("{}[{},{}]", states.empty() ? "" : ",", wire::quote(to_string(state)), count);
    return wire::format_object({{"first", wire::quote(first)}, {"states", "[" + states + "]"}});
  }
};

Result<net::Response> task_states(control::ReadStore& store, const Call& call) {
  auto job = control::find_job(store, call.caller.workspace, call.part("job"));
  if (!job) return fail(job.error());
  control::TaskQuery query{{}, {}, read_at_once};
  if (const auto after = after_of(call)) {
    auto task = find_task(store, *job, *after);
    if (!task) return fail(task.error());
    query.after = task->ref;
  }
  std::vector<EntryStates> entries;
  std::string last;
  std::uint32_t seen = 0;
  bool is_whole = false;
  while (seen < states_max && !is_whole) {
    auto page = store.tasks(job->id, query);
    if (!page) return fail(page.error());
    for (const TaskView& view : *page) {
      if (entries.empty() || entries.back().group != view.task.ref.group)
        entries.push_back({view.task.ref.group, view.task.name});
      entries.back().add(view.task.state);
    }
    seen += static_cast<std::uint32_t>(page->size());
    is_whole = page->size() < query.limit;
    if (page->empty()) break;
    query.after = page->back().task.ref;
    last = page->back().task.name;
  }
  std::vector<std::string> items;
  items.reserve(entries.size());
  for (const EntryStates& entry : entries) items.push_back(entry.json());
  return json(200, wire::format_list(items, is_whole ? std::nullopt : std::optional(last)));
}

}  // namespace

void Api::add_task_state_routes() {
  router_.add("GET", "/v1/jobs/{job}/task-states", {Object::job, Verb::read}, [this](const Call& call) {
    answer(call, [call](control::ReadStore& store) { return task_states(store, call); });
  });
}

}  // namespace slipway::api
