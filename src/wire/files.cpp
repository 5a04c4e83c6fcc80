#include "wire/files.h"

#include "wire/json.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

Error error_of(std::string_view json) {
  const Json parsed = Json::parse(json, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = parsed.is_object() ? parsed.find(key) : parsed.end();
    return found != parsed.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Error error{ErrorCode::internal, text("what"), ""};
  if (error.what.empty()) error.what = "the node could not read the file";
  const std::string code = text("code");
  if (code == "not_found") error.code = ErrorCode::not_found;
  if (code == "denied") error.code = ErrorCode::denied;
  if (code == "invalid") error.code = ErrorCode::invalid;
  return error;
}

}  // namespace

std::string format_read_question(const std::string& path, std::uint64_t offset, std::size_t length,
                                 bool wait) {
  return Json{{"op", "read"}, {"path", path}, {"offset", offset}, {"length", length}, {"wait", wait}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

std::string format_list_question(const std::string& path) {
  return Json{{"op", "list"}, {"path", path}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> parse_file_bytes(std::string_view answer) {
  if (answer.empty()) return fail(ErrorCode::internal, "a node's answer is empty");
  if (answer[0] == 2) return fail(error_of(answer.substr(1)));
  return std::string(answer.substr(1));
}

Result<std::vector<ListedFile>> parse_file_list(std::string_view answer) {
  if (answer.empty() || answer[0] == 2) return fail(error_of(answer.empty() ? answer : answer.substr(1)));
  try {
    std::vector<ListedFile> files;
    const Json json = Json::parse(answer.substr(1));
    for (const Json& item : json.at("entries")) {
      const auto modified = parse_time(item.at("modified").get<std::string>());
      files.push_back({item.at("name").get<std::string>(), item.at("kind").get<std::string>(),
                       integer<std::uint64_t>(item.at("size")), modified ? *modified : TimePoint{}});
    }
    return files;
  } catch (const Json::exception&) {
    return fail(ErrorCode::internal, "a node's list of files is malformed");
  }
}

std::string format_file(const std::string& path, std::string_view kind, std::uint64_t size,
                        TimePoint modified_at) {
  return Json{
      {"path", to_utf8(path)}, {"kind", kind}, {"size", size}, {"modified_at", format_time(modified_at)}}
      .dump();
}

}  // namespace slipway::wire
