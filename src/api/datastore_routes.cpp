// Datastores, and the files in them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "api/api.h"
#include "api/stored_files.h"
#include "base/log.h"
#include "control/permit.h"
#include "domain/layout.h"
#include "wire/datastore.h"
#include "wire/records.h"

namespace slipway::api {
namespace {

using control::Controller;
using control::ReadStore;

Result<DatastoreRecord> find_datastore(ReadStore& store, const Call& call) {
  auto found = store.datastore(call.caller.workspace, call.part("name"));
  if (!found) return fail(found.error());
  if (*found) return **found;
  return fail(ErrorCode::not_found, fmt::format("there is no datastore {}", call.part("name").substr(0, 200)),
              "slipway datastore list shows those there are");
}

// A SAS in a URL is a secret: it is kept as the key is, sealed and never shown. It begins with '?', which no
// account's key does.
Result<void> split_sas(DatastoreRecord& record) {
  const std::size_t mark = record.url.find('?');
  if (mark == std::string::npos) return {};
  if (!record.key.empty())
    return fail(ErrorCode::invalid, "the url has a SAS, and there is a key as well", "leave one of them out");
  record.key = record.url.substr(mark);
  record.url.resize(mark);
  return {};
}

Error busy() { return {ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}; }

}  // namespace

std::string Api::folder_of(const DatastoreRecord& datastore) const {
  return datastore.path.empty() ? options_.data + "/" + datastore_folder(datastore.workspace, datastore.name)
                                : datastore.path;
}

// Finds the datastore, then does `work` with its files away from the network's thread.
void Api::with_files(const Call& call, std::function<std::function<void()>(const StoredFiles&)> work) {
  read<DatastoreRecord>(
      call, [call](ReadStore& store) { return find_datastore(store, call); },
      [this, call, work = std::move(work)](const DatastoreRecord& datastore) {
        const bool own = datastore.path.empty();
        const auto check = own ? StoredFiles::Check() : [exposed = exposed_](const std::string& real) {
          return exposed.check(real);
        };
        const auto reached = [call, work, own, check, folder = folder_of(datastore),
                              workspace = options_.data + "/" +
                                          workspace_folder(datastore.workspace)]() -> std::function<void()> {
          if (own)  // of the workspace's folder others see nothing, before its first job too
            if (auto made = make_folders(workspace, 0700).and_then([&] { return make_folders(folder); });
                !made)
              return [call, made] { call.send(problem(made.error())); };
          return work(StoredFiles(folder, check));
        };
        const auto refused = [call, name = datastore.name](const std::string& why) {
          call.send(problem({ErrorCode::unavailable, fmt::format("the folder of datastore {} {}", name, why),
                             "see whether its mount works on the service's machine"}));
        };
        if (!folders_.post(datastore.workspace + "/" + datastore.name, reached, refused))
          call.send(problem(busy()));
      });
}

void Api::add_datastore_routes() {
  add_datastore_file_routes();
  router_.add("GET", "/v1/datastores", {Object::datastore, Verb::read}, [this](const Call& call) {
    const auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    answer(call, [call, limit = *limit](ReadStore& store) -> Result<net::Response> {
      auto all = store.datastores(call.caller.workspace);  // by name
      if (!all) return fail(all.error());
      const std::string after = call.parameter("after").value_or("");
      std::vector<std::string> items;
      std::optional<std::string> next;
      std::string last;
      for (const DatastoreRecord& each : *all) {
        if (each.name <= after) continue;
        if (items.size() == limit) {
          next = last;
          break;
        }
        items.push_back(wire::format(each));
        last = each.name;
      }
      return json(200, wire::format_list(items, next));
    });
  });
  router_.add("GET", "/v1/datastores/{name}", {Object::datastore, Verb::read}, [this](const Call& call) {
    answer(call, [call](ReadStore& store) {
      return find_datastore(store, call).map([](const DatastoreRecord& datastore) {
        return json(200, wire::format(datastore));
      });
    });
  });
  router_.add("PUT", "/v1/datastores/{name}", {Object::datastore, Verb::create}, [this](const Call& call) {
    auto request = wire::parse_datastore(call.request().body);
    if (!request) return call.send(problem(request.error()));
    request->name = call.part("name");
    request->workspace = call.caller.workspace;
    if (const auto split = split_sas(*request); !split) return call.send(problem(split.error()));
    if (!request->key.empty()) request->key = options_.sealer->seal(request->key, request->url);
    const auto put = [this, call, record = *request] {
      change<DatastoreRecord>(
          call, [call, record](Controller& c) { return c.put_datastore(call.caller, record); },
          [](const DatastoreRecord& datastore) { return json(200, wire::format(datastore)); });
    };
    if (request->path.empty()) return put();
    // Before the folder is looked at: those who may not expose one do not learn whether it is there.
    if (auto may =
            control::permit(call.caller, {Object::datastore, Verb::expose}, "datastore " + request->name, {});
        !may)
      return call.send(problem(may.error()));
    const bool queued = worker_.post([this, call, put, path = request->path] {
      const auto checked = exposed_.check(path);
      call.loop().post([call, put, checked] { checked ? put() : call.send(problem(checked.error())); });
    });
    if (!queued) call.send(problem(busy()));
  });
  router_.add("DELETE", "/v1/datastores/{name}", {Object::datastore, Verb::remove}, [this](const Call& call) {
    change<DatastoreRecord>(
        call,
        [call](Controller& c) -> Result<DatastoreRecord> {
          auto found = c.datastore(call.caller, call.part("name"));
          if (!found) return found;
          if (auto deleted = c.delete_datastore(call.caller, found->name); !deleted)
            return fail(deleted.error());
          return found;
        },
        [](const DatastoreRecord&) { return net::Response{204}; });
  });
}

void Api::add_datastore_file_routes() {
  router_.add("GET", "/v1/datastores/{name}/files", {Object::data, Verb::read}, [this](const Call& call) {
    const auto limit = limit_of(call);
    if (!limit) return call.send(problem(limit.error()));
    with_files(call, [call, limit = *limit](const StoredFiles& files) -> std::function<void()> {
      const auto page =
          files.list(call.parameter("path").value_or(""), call.parameter("after").value_or(""), limit);
      if (!page) return [call, error = page.error()] { call.send(problem(error)); };
      std::vector<std::string> items;
      for (const StoredFile& file : page->files)
        items.push_back(wire::format_stored_file(file.name, file.kind, file.size, file.modified_at));
      const std::optional<std::string> next =
          page->more ? std::optional(page->files.back().name) : std::nullopt;
      return [call, body = wire::format_list(items, next)] { call.send(json(200, body)); };
    });
  });
  router_.add("GET", "/v1/datastores/{name}/content", {Object::data, Verb::read}, [this](const Call& call) {
    with_files(call, [call](const StoredFiles& files) -> std::function<void()> {
      auto opened =
          std::make_shared<Result<StoredFiles::Opened>>(files.open(call.parameter("path").value_or("")));
      return [call, opened] {
        if (!*opened) return call.send(problem(opened->error()));
        net::Headers headers{{"Content-Type", "application/octet-stream"}};
        if (const auto part = part_of(call, (*opened)->size, headers))
          call.exchange().send_file(part->status, std::move(headers), std::move((*opened)->file),
                                    part->offset, part->length);
      };
    });
  });
  router_.add("PUT", "/v1/datastores/{name}/content", {Object::data, Verb::update}, [this](const Call& call) {
    const auto received = call.request().body_file;
    with_files(call, [this, call, received](const StoredFiles& files) -> std::function<void()> {
      const auto put = files.put(call.parameter("path").value_or(""), received ? received->path() : "");
      if (!put) return [call, error = put.error()] { call.send(problem(error)); };
      return [this, call, file = *put, is_own = !files.is_exposed()] {
        if (is_own) disk_.uploaded(call.caller.workspace, call.part("name"), file.size);
        call.send(json(200, wire::format_stored_file(file.name, file.kind, file.size, file.modified_at)));
      };
    });
  });
  router_.add("DELETE", "/v1/datastores/{name}/content", {Object::data, Verb::update},
              [this](const Call& call) {
                with_files(call, [this, call](const StoredFiles& files) -> std::function<void()> {
                  const auto removed = files.remove(call.parameter("path").value_or(""));
                  return [this, call, removed, is_own = !files.is_exposed()] {
                    if (is_own) disk_.changed(call.caller.workspace, call.part("name"));
                    call.send(removed ? net::Response{204} : problem(removed.error()));
                  };
                });
              });
  router_.add("POST", "/v1/datastores/{name}/folders", {Object::data, Verb::update},
              [this](const Call& call) {
                with_files(call, [call](const StoredFiles& files) -> std::function<void()> {
                  const auto made = files.make_folder(call.parameter("path").value_or(""));
                  return [call, made] { call.send(made ? net::Response{204} : problem(made.error())); };
                });
              });
}

}  // namespace slipway::api
