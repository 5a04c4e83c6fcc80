#include "cli/client/datastore_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace slipway::cli {
namespace fs = std::filesystem;

std::string joined_path(const std::string& folder, const std::string& name) {
  if (folder.empty() || name.empty()) return folder.empty() ? name : folder;
  return folder.ends_with("/") ? folder + name : folder + "/" + name;
}

std::string last_part(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return {};
  const std::size_t slash = path.rfind('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end - (slash == std::string::npos ? 0 : slash + 1) + 1);
}

std::string DatastoreFiles::target(const char* what, const std::string& path) const {
  return with_query(resource({"datastores", name_, what}), {{"path", path}});
}

Outcome<void> DatastoreFiles::make_folder(const std::string& path) {
  const Outcome<Value> made = service_.send("POST", target("folders", path), {});
  if (!made) return give_up(made);
  return {};
}

Outcome<void> DatastoreFiles::remove(const std::string& path) {
  const Outcome<Value> removed = service_.send("DELETE", target("content", path), {});
  if (!removed) return give_up(removed);
  return {};
}

Outcome<void> DatastoreFiles::list(const std::string& folder,
                                   const std::function<bool(const StoredFile&)>& each) {
  return service_.pages(target("files", folder), [&](const std::vector<Value>& items) {
    for (const Value& item : items)
      if (!each({joined_path(folder, item.text_at("name")), item.text_at("kind") == "folder",
                 item.count_at("size"), item.text_at("modified_at")}))
        return false;
    return true;
  });
}

Outcome<void> DatastoreFiles::walk(const std::string& folder,
                                   const std::function<Outcome<void>(const StoredFile&)>& each) {
  std::vector<std::string> folders{folder};
  while (!folders.empty()) {
    const std::string at = std::move(folders.back());
    folders.pop_back();
    Outcome<void> done;
    Outcome<void> seen = list(at, [&](const StoredFile& file) {
      if (file.is_folder)
        folders.push_back(file.path);
      else
        done = each(file);
      return done.has_value();
    });
    if (!done) return done;
    if (!seen) return seen;
  }
  return {};
}

Outcome<void> DatastoreFiles::send(const std::string& file, const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return refuse("cannot send " + file, error ? error.message() : "it is not a file", "");
  net::Client::Options options;
  options.body_file = file;
  options.headers = {{"Content-Type", "application/octet-stream"}};
  const Outcome<net::Response> answer = service_.request("PUT", target("content", path), options);
  if (!answer) return give_up(answer);
  return {};
}

// Written beside and renamed: at `file` there is the whole of it or what was there before.
Outcome<void> DatastoreFiles::fetch(const std::string& path, const std::string& file) {
  const std::string beside = fmt::format("{}.{}.part", file, ::getpid());
  Fd part(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!part) return give_up(to_failure(system_error("cannot create " + beside, errno)));
  Result<void> written;
  net::Client::Options options;
  options.on_piece = [&](std::string_view piece) {
    return (written = write_all(part.get(), piece, beside)).has_value();
  };
  const Outcome<net::Response> answer = service_.request("GET", target("content", path), options);
  part.reset();
  Outcome<void> done;
  if (!written)
    done = give_up(written);
  else if (!answer)
    done = give_up(answer);
  else if (::rename(beside.c_str(), file.c_str()) != 0)
    done = give_up(to_failure(system_error("cannot put the file at " + file, errno)));
  if (!done) ::unlink(beside.c_str());
  return done;
}

Outcome<DatastoreFiles::Moved> DatastoreFiles::send_folder(const std::string& folder, const std::string& to,
                                                           const Choice& choice) {
  Moved moved;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file()) continue;
    const std::string below = fs::relative(at->path(), folder).string();
    if (choice && !choice(below)) continue;
    const std::string path = joined_path(to, below);
    if (const auto sent = send(at->path().string(), path); !sent) return give_up(sent);
    moved.paths.push_back(path);
    moved.bytes += at->file_size();
  }
  if (error) return refuse("cannot read the folder " + folder, error.message());
  return moved;
}

Outcome<DatastoreFiles::Moved> DatastoreFiles::fetch_folder(const std::string& from,
                                                            const std::string& folder, const Choice& choice) {
  Moved moved;
  const std::size_t skipped = from.empty() || from.ends_with("/") ? from.size() : from.size() + 1;
  const Outcome<void> done = walk(from, [&](const StoredFile& file) -> Outcome<void> {
    const std::string below = file.path.substr(std::min(skipped, file.path.size()));
    if (choice && !choice(below)) return {};
    // Names come from the service: none may lead out of the folder.
    const fs::path clean = fs::path(below).lexically_normal();
    if (clean.empty() || clean.is_absolute() || *clean.begin() == "..")
      return refuse("the service names a file outside of the folder: " + below);
    const std::string place = folder + "/" + clean.string();
    if (const auto made = make_folders(fs::path(place).parent_path().string()); !made) return give_up(made);
    if (auto fetched = fetch(file.path, place); !fetched) return fetched;
    moved.paths.push_back(place);
    moved.bytes += file.size;
    return {};
  });
  if (!done) return give_up(done);
  return moved;
}

}  // namespace slipway::cli
