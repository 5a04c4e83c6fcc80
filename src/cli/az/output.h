#pragma once
// How Azure-compatible commands print: JSON with sorted keys, tables, tab-separated values, and what --query
// makes of the answer. Included in .cpp files only.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/az/arm.h"

namespace slipway::cli::az {

struct ColumnOf {
  std::string title;
  std::function<std::string(const Value&)> cell;
};
// How one kind of answer looks: the fields that are shown even when they are not set, and the table.
struct View {
  const char* fields =
      nullptr;  // JSON with every field, null or an object or list of such; nullptr: the answer as it is
  std::vector<ColumnOf> columns;  // empty: the table has what the answer has
};

// A resource as az shows it: `properties` moved up, the group from the id, all fields there.
// Every field of a kind of resource, each null; null where the view has none.
Value known_fields(const View& view);
Value flattened(const Value& resource, const View& view);
Value with_fields(const Value& value, const Value& fields);

// The answer in the form asked for. Null prints nothing.
std::string format_answer(const Value& value, const std::string& form, const View& view, bool queried);

using Work = std::function<Outcome<Value>(Arm&)>;
// Checks the query, does the work and prints what it gives: a resource, a list of them, or null.
Outcome<int> answer(Context& context, const Common& common, const View& view, const Work& work);

// Binds a command's options, how its answer looks, and what it does.
template <class Options>
void runs(Command& command, Context& context, std::shared_ptr<Options> options, const View& view,
          Outcome<Value> (*work)(Arm&, const Options&)) {
  command.runs([&context, options, &view, work] {
    return answer(context, *options, view, [&](Arm& arm) { return work(arm, *options); });
  });
}

// (fields.cpp)
const View& workspace_view();
const View& experiment_view();
const View& cluster_view();
const View& job_view();
const View& file_server_view();
const View& file_view();
const View& setup_file_view();
const View& node_view();
const View& usage_view();
const View& plain_view();

}  // namespace slipway::cli::az
