#include "compat/batchai/access.h"

#include <algorithm>

namespace slipway::batchai {
namespace {

enum class Ask { look, make, change, remove, terminate };

struct Row {
  Noun noun;
  Ask ask;
  Access access;
  const char* method;
  const char* path;  // below the subscription; {…} stands for a name
};

#define GROUP "/resourceGroups/{group}/providers/Microsoft.BatchAI/workspaces/{workspace}"
#define LOCATION "/providers/Microsoft.BatchAI/locations/{location}"
constexpr Row rows[] = {
    {Noun::usages, Ask::look, {Object::pool, Verb::read}, "GET", LOCATION "/usages"},
    {Noun::operation_result,
     Ask::look,
     {Object::collection, Verb::read},
     "GET",
     LOCATION "/operationresults/{operation}"},
    {Noun::operation_status,
     Ask::look,
     {Object::collection, Verb::read},
     "GET",
     LOCATION "/operationstatuses/{operation}"},
    {Noun::workspace, Ask::look, {Object::collection, Verb::read}, "GET", GROUP},
    {Noun::workspace, Ask::make, {Object::collection, Verb::create}, "PUT", GROUP},
    {Noun::workspace, Ask::change, {Object::collection, Verb::update}, "PATCH", GROUP},
    {Noun::workspace, Ask::remove, {Object::collection, Verb::remove}, "DELETE", GROUP},
    {Noun::experiment, Ask::look, {Object::collection, Verb::read}, "GET", GROUP "/experiments/{experiment}"},
    {Noun::experiment,
     Ask::make,
     {Object::collection, Verb::create},
     "PUT",
     GROUP "/experiments/{experiment}"},
    {Noun::experiment,
     Ask::remove,
     {Object::collection, Verb::remove},
     "DELETE",
     GROUP "/experiments/{experiment}"},
    {Noun::file_server, Ask::look, {Object::datastore, Verb::read}, "GET", GROUP "/fileServers/{server}"},
    {Noun::file_server, Ask::make, {Object::datastore, Verb::create}, "PUT", GROUP "/fileServers/{server}"},
    {Noun::file_server,
     Ask::remove,
     {Object::datastore, Verb::remove},
     "DELETE",
     GROUP "/fileServers/{server}"},
    {Noun::cluster, Ask::look, {Object::pool, Verb::read}, "GET", GROUP "/clusters/{cluster}"},
    {Noun::cluster,
     Ask::look,
     {Object::pool, Verb::read},
     "POST",
     GROUP "/clusters/{cluster}/listRemoteLoginInformation"},
    {Noun::cluster, Ask::make, {Object::pool, Verb::create}, "PUT", GROUP "/clusters/{cluster}"},
    {Noun::cluster, Ask::change, {Object::pool, Verb::update}, "PATCH", GROUP "/clusters/{cluster}"},
    {Noun::cluster, Ask::remove, {Object::pool, Verb::remove}, "DELETE", GROUP "/clusters/{cluster}"},
    {Noun::job, Ask::look, {Object::job, Verb::read}, "GET", GROUP "/experiments/{experiment}/jobs/{job}"},
    {Noun::job,
     Ask::look,
     {Object::job, Verb::read},
     "POST",
     GROUP "/experiments/{experiment}/jobs/{job}/listOutputFiles"},
    {Noun::job, Ask::make, {Object::job, Verb::create}, "PUT", GROUP "/experiments/{experiment}/jobs/{job}"},
    {Noun::job,
     Ask::terminate,
     {Object::job, Verb::remove},
     "POST",
     GROUP "/experiments/{experiment}/jobs/{job}/terminate"},
    {Noun::job,
     Ask::remove,
     {Object::job, Verb::remove},
     "DELETE",
     GROUP "/experiments/{experiment}/jobs/{job}"},
};
#undef GROUP
#undef LOCATION

Ask ask_of(const Target& target, std::string_view method) {
  if (target.action == "terminate") return Ask::terminate;
  if (!target.action.empty()) return Ask::look;
  if (method == "PUT") return Ask::make;
  if (method == "PATCH") return Ask::change;
  if (method == "DELETE") return Ask::remove;
  return Ask::look;
}

}  // namespace

Access access_of(const Target& target, std::string_view method) {
  const Ask ask = ask_of(target, method);
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [&](const Row& one) { return one.noun == target.noun && one.ask == ask; });
  // What has no row is no request of this API: who may read anything gets an answer that says so.
  if (row == std::end(rows)) return {Object::collection, Verb::read};
  return row->access;
}

std::vector<api::CompatRoute> routes() {
  std::vector<api::CompatRoute> all{
      {"GET", "/providers/Microsoft.BatchAI/operations", {Object::collection, Verb::read}},
      {"GET", "/batchai/download/{expiry}/{signature}/{path}", {Object::link, Verb::read}}};
  for (const Row& row : rows)
    all.push_back({row.method, std::string("/subscriptions/{subscription}") + row.path, row.access});
  return all;
}

}  // namespace slipway::batchai
