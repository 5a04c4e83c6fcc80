#include "agent/file_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/list_folder.h"
#include "domain/layout.h"
#include "wire/files.h"
#include "wire/json.h"

namespace slipway::agent {
namespace {

using wire::Json;

enum class ReplyKind : char { data = 0, json = 1, error = 2 };

constexpr Duration watch_longest = 10s;
constexpr Duration wait_unwatched = 1s;  // where the machine has no watches left

std::string reply_head(std::uint64_t number, ReplyKind kind) {
  std::string head(sizeof number + 1, '\0');
  std::memcpy(head.data(), &number, sizeof number);
  head[sizeof number] = static_cast<char>(kind);
  return head;
}

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid: return "invalid";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::conflict: return "conflict";
    case ErrorCode::denied: return "denied";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::too_large: return "too_large";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

struct FileRequest {
  std::string op;
  FileServer::Location location;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool wait = false;
  std::string after;
  std::uint64_t limit = 0;
};

Result<FileRequest> parse_request(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::invalid, "a file request is not a JSON object");
  FileRequest request;
  const auto text_of = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto number_of = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  };
  request.op = text_of("op");
  request.location = {text_of("folder"), text_of("path")};
  request.offset = number_of("offset");
  request.length = number_of("length");
  const auto wait = json.find("wait");
  request.wait = wait != json.end() && wait->is_boolean() && wait->get<bool>();
  request.after = text_of("after");
  request.limit = number_of("limit");
  if (request.limit == 0) request.limit = FileServer::entries_max;
  if (request.op != "read" && request.op != "list" && request.op != "size")
    return fail(ErrorCode::invalid, "a file request must be a read, a list or a size");
  // The data folder itself is nobody's to read.
  if (request.location.folder.find_first_not_of("./") == std::string::npos ||
      ("/" + request.location.folder + "/").find("/../") != std::string::npos)
    return fail(ErrorCode::invalid, "a file request must name the folder that its path lies in");
  return request;
}

Result<std::string> read_piece(int file, std::uint64_t offset, std::size_t length) {
  std::string data(length, '\0');
  ssize_t got = -1;
  do {
    got = ::pread(file, data.data(), length, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail(system_error("cannot read the file", errno));
  data.resize(static_cast<std::size_t>(got));
  return data;
}

// Only files and folders: an open of anything else could block or do something.
Result<Fd> open_to_read(const std::string& data, const FileServer::Location& location) {
  const auto& [folder, path] = location;
  if (is_secret_path(folder) || is_secret_path(path))
    return fail(ErrorCode::not_found, fmt::format("there is no file '{}'", path));
  const Fd root(::open(data.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(system_error("cannot open " + data, errno));
  const Result<Fd> inside = open_beneath(root.get(), folder, O_PATH | O_DIRECTORY);
  if (!inside) return fail(inside.error().code, fmt::format("there is no file '{}'", path));
  Result<Fd> fd = open_beneath(inside->get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return fd;
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return fail(system_error("cannot look at " + path, errno));
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return fail(ErrorCode::invalid, path + " is neither a file nor a folder");
  return fd;
}

Result<std::uint64_t> size_of(const std::string& data, const FileServer::Location& location) {
  const Result<Fd> file = open_to_read(data, location);
  const std::string& path = location.path;
  if (!file) return fail(file.error());
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) return fail(system_error("cannot look at " + path, errno));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid, "'" + path + "' is a folder");
  return static_cast<std::uint64_t>(status.st_size);
}

bool is_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Names may hold any bytes; JSON only text.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

FileServer::FileServer(net::Loop& loop, std::string data, Reply reply)
    : loop_(loop), data_(std::move(data)), reply_(std::move(reply)), watcher_(loop) {}

void FileServer::handle(std::string_view message) {
  std::uint64_t number = 0;
  if (message.size() < sizeof number) return;  // not even a number to answer to
  std::memcpy(&number, message.data(), sizeof number);
  answer(number, message.substr(sizeof number));
}

void FileServer::forget_all() { waiting_.clear(); }

void FileServer::answer(std::uint64_t number, std::string_view text) {
  const Result<FileRequest> request = parse_request(text);
  if (!request) return send_error(number, request.error());
  if (request->op == "list") {
    Result<Fd> folder = open_to_read(data_, request->location);
    if (!folder) return send_error(number, folder.error());
    const auto limit = std::min<std::uint64_t>(request->limit, entries_max);
    const Result<FolderPage> page = list_folder(std::move(*folder), request->after, limit);
    if (!page) return send_error(number, page.error());
    return reply_(reply_head(number, ReplyKind::json) + wire::format_file_list(*page));
  }
  if (request->op == "size") {
    const Result<std::uint64_t> size = size_of(data_, request->location);
    if (!size) return send_error(number, size.error());
    return reply_(reply_head(number, ReplyKind::json) + dump(Json{{"size", *size}}));
  }
  const std::size_t length = std::min<std::uint64_t>(request->length, length_max);
  Result<std::string> data = read(request->location, request->offset, length);
  if (!data) return send_error(number, data.error());
  if (!data->empty() || !request->wait || length == 0 || waiting_.size() >= waiting_max)
    return send_data(number, std::move(*data));
  wait_for_more(number, request->location, request->offset, length);
}

// What was read is the attempt's only if its path still leads to the same file: the folder of an attempt that
// has written nothing is handed to another one, by a rename (keeper/empty_folders.h).
Result<std::string> FileServer::read(const Location& location, std::uint64_t offset,
                                     std::size_t length) const {
  const Result<Fd> file = open_to_read(data_, location);
  if (!file) return fail(file.error());
  Result<std::string> data = read_piece(file->get(), offset, length);
  if (!data || data->empty()) return data;
  const Result<Fd> again = open_to_read(data_, location);
  if (!again) return fail(again.error());
  if (!is_same_file(file->get(), again->get()))
    return fail(ErrorCode::not_found, "there is no file '" + location.path + "'");
  return data;
}

void FileServer::wait_for_more(std::uint64_t number, const Location& location, std::uint64_t offset,
                               std::size_t length) {
  Waiting& waiting = waiting_[number];
  waiting = {location, offset, length, nullptr, nullptr};
  waiting.watch = watch(location, [this, number] { look_again(number, false); });
  waiting.timer = loop_.after(waiting.watch ? watch_longest : wait_unwatched,
                              [this, number] { look_again(number, true); });
  look_again(number, false);  // it may have grown before it was watched
}

std::shared_ptr<net::FileWatcher::Handle> FileServer::watch(const Location& location,
                                                            std::function<void()> changed) {
  const Result<Fd> file = open_to_read(data_, location);
  return file ? watcher_.watch(fmt::format("/proc/self/fd/{}", file->get()), std::move(changed)) : nullptr;
}

void FileServer::look_again(std::uint64_t number, bool is_last) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;
  const Waiting& waiting = found->second;
  Result<std::string> data = read(waiting.location, waiting.offset, waiting.length);
  if (data && data->empty() && !is_last) return;
  // Watch and timer may be what called us, and both allow to be dropped from there.
  waiting_.erase(found);
  if (!data) return send_error(number, data.error());
  send_data(number, std::move(*data));
}

void FileServer::send_data(std::uint64_t number, std::string data) {
  reply_(reply_head(number, ReplyKind::data) + std::move(data));
}

void FileServer::send_error(std::uint64_t number, const Error& error) {
  reply_(reply_head(number, ReplyKind::error) +
         dump(Json{{"code", to_string(error.code)}, {"what", error.what}}));
}

}  // namespace slipway::agent
