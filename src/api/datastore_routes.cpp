// Datastores, and the files in them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "api/api.h"
#include "api/stored_files.h"
#include "base/log.h"
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

Error busy() { return {ErrorCode::unavailable, "too much waits for the disk", "try again shortly"}; }

// An upload that nobody takes is removed, wherever the request ends.
struct Received {
  explicit Received(std::string path) : file(std::move(path)) {}
  Received(const Received&) = delete;
  ~Received() {
    if (!file.empty()) ::unlink(file.c_str());
  }
  std::string file;
};

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
        const bool queued = worker_.post([call, work, own, folder = folder_of(datastore)] {
          if (own)
            if (auto made = make_folders(folder); !made)
              return call.loop().post([call, made] { call.send(problem(made.error())); });
          call.loop().post(work(StoredFiles(folder)));
        });
        if (!queued) call.send(problem(busy()));
      });
}

void Api::add_datastore_routes() {
  add_datastore_file_routes();
  router_.add("GET", "/v1/datastores", Role::viewer, [this](const Call& call) {
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
  router_.add("GET", "/v1/datastores/{name}", Role::viewer, [this](const Call& call) {
    answer(call, [call](ReadStore& store) {
      return find_datastore(store, call).map([](const DatastoreRecord& datastore) {
        return json(200, wire::format(datastore));
      });
    });
  });
  router_.add("PUT", "/v1/datastores/{name}", Role::member, [this](const Call& call) {
    auto request = wire::parse_datastore(call.request().body);
    if (!request) return call.send(problem(request.error()));
    request->name = call.part("name");
    request->workspace = call.caller.workspace;
    if (!request->key.empty()) request->key = options_.sealer->seal(request->key);
    change<DatastoreRecord>(
        call, [call, record = *request](Controller& c) { return c.put_datastore(call.caller, record); },
        [](const DatastoreRecord& datastore) { return json(200, wire::format(datastore)); });
  });
  router_.add("DELETE", "/v1/datastores/{name}", Role::member, [this](const Call& call) {
    change<DatastoreRecord>(
        call,
        [call](Controller& c) -> Result<DatastoreRecord> {
          auto found = c.datastore(call.caller, call.part("name"));
          if (!found) return found;
          if (auto deleted = c.delete_datastore(call.caller, found->name); !deleted)
            return fail(deleted.error());
          return found;
        },
        [this](const DatastoreRecord& datastore) {
          // A folder somebody gave us is theirs. After uploads that wait already, before those that follow.
          if (datastore.path.empty())
            worker_.post([folder = folder_of(datastore)] {
              std::error_code error;
              std::filesystem::remove_all(folder, error);
              if (error) log::error("datastore.files", {{"folder", folder}, {"why", error.message()}});
            });
          return net::Response{204};
        });
  });
}

void Api::add_datastore_file_routes() {
  router_.add("GET", "/v1/datastores/{name}/files", Role::viewer, [this](const Call& call) {
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
  router_.add("GET", "/v1/datastores/{name}/content", Role::viewer, [this](const Call& call) {
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
  router_.add("PUT", "/v1/datastores/{name}/content", Role::member, [this](const Call& call) {
    auto received = std::make_shared<Received>(call.request().body_file);
    with_files(call, [call, received](const StoredFiles& files) -> std::function<void()> {
      const auto put = files.put(call.parameter("path").value_or(""), received->file);
      if (!put) return [call, error = put.error()] { call.send(problem(error)); };
      return [call, file = *put] {
        call.send(json(200, wire::format_stored_file(file.name, file.kind, file.size, file.modified_at)));
      };
    });
  });
  router_.add("DELETE", "/v1/datastores/{name}/content", Role::member, [this](const Call& call) {
    with_files(call, [call](const StoredFiles& files) -> std::function<void()> {
      const auto removed = files.remove(call.parameter("path").value_or(""));
      return [call, removed] { call.send(removed ? net::Response{204} : problem(removed.error())); };
    });
  });
  router_.add("POST", "/v1/datastores/{name}/folders", Role::member, [this](const Call& call) {
    with_files(call, [call](const StoredFiles& files) -> std::function<void()> {
      const auto made = files.make_folder(call.parameter("path").value_or(""));
      return [call, made] { call.send(made ? net::Response{204} : problem(made.error())); };
    });
  });
}

}  // namespace slipway::api
