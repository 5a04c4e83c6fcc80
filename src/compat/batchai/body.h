#pragma once
// The bodies of requests: read by a table of what each may hold, with every problem reported at once.
//
// What comes out has the known fields only, in the table's order, enumerations in lower case and defaults
// filled in: it is what the resource shows from then on. Unknown keys are dropped without an error,
// as files from all versions of Batch AI have some.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "compat/batchai/cloud_error.h"
#include "compat/batchai/tree.h"

namespace slipway::batchai {

struct Problem {
  std::string path;  // properties.inputDirectories[0].id
  std::string message;
};
using Problems = std::vector<Problem>;

enum class Body { workspace, workspace_change, cluster, cluster_change, job, file_server };

// Values that must not be stored or shown are still in it: without_secrets() takes them out.
Value read_body(Body kind, const Value& sent, Problems& problems);
Value without_secrets(Body kind, const Value& body);

// Parses, reads and checks; the error names every problem, with its line where the text has several.
Answer<Value> accept_body(Body kind, std::string_view json);
CloudError to_cloud_error(const Problems& problems, std::string_view json);

// Rules between fields, which no table holds. (check.cpp)
void check_cluster(const Value& body, Problems& problems);
void check_scale(const Value& scale, const std::string& path, Problems& problems);
void check_job(const Value& body, Problems& problems);
void check_file_server(const Value& body, Problems& problems);

struct Toolkits {        // the nine objects of which a job has one
  const char* settings;  // customToolkitSettings
  const char* type;      // custom, as in toolType
};
const std::vector<Toolkits>& toolkits();
// The one the job has; nullptr when it has none or several.
const Toolkits* toolkit_of(const Value& job_properties);

// P7D, PT1H30M, and .NET's 7.00:00:00.
std::optional<Duration> parse_period(std::string_view text);
std::string format_period(Duration period);

}  // namespace slipway::batchai
