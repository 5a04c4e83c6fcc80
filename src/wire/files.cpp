#include "wire/files.h"

#include "wire/json_tree.h"
#include "wire/utf8.h"

namespace slipway::wire {
namespace {

Error error_of(std::string_view json) {
  Json parsed;
  try {
    parsed = parse_tree(json);
  } catch (const Json::exception&) {  // then it has no fields
  }
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

// Names may hold any bytes; JSON only text.
std::string dump_any(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string_view kind_of(const std::string& word) {
  for (const std::string_view known : {"file", "folder", "link"})
    if (word == known) return known;
  return "other";
}

}  // namespace

std::string format_read_question(const std::string& folder, const std::string& path, std::uint64_t offset,
                                 std::size_t length, bool wait) {
  return Json{{"op", "read"},     {"folder", folder}, {"path", path},
              {"offset", offset}, {"length", length}, {"wait", wait}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string format_list_question(const std::string& folder, const std::string& path, const std::string& after,
                                 std::size_t limit) {
  return dump_any({{"op", "list"}, {"folder", folder}, {"path", path}, {"after", after}, {"limit", limit}});
}

std::string format_size_question(const std::string& folder, const std::string& path) {
  return dump_any({{"op", "size"}, {"folder", folder}, {"path", path}});
}

Result<std::string> parse_file_bytes(std::string_view answer) {
  if (answer.empty()) return fail(ErrorCode::internal, "a node's answer is empty");
  if (answer[0] == 2) return fail(error_of(answer.substr(1)));
  return std::string(answer.substr(1));
}

Result<FolderPage> parse_file_list(std::string_view answer) {
  if (answer.empty() || answer[0] == 2) return fail(error_of(answer.empty() ? answer : answer.substr(1)));
  try {
    FolderPage page;
    const Json json = parse_tree(answer.substr(1));
    for (const Json& item : json.at("entries")) {
      const auto modified = parse_time(item.at("modified").get<std::string>());
      page.entries.push_back({item.at("name").get<std::string>(),
                              kind_of(item.at("kind").get_ref<const std::string&>()),
                              integer<std::uint64_t>(item.at("size")), modified ? *modified : TimePoint{}});
    }
    if (json.contains("next")) page.next = json.at("next").get<std::string>();
    return page;
  } catch (const Json::exception&) {
    return fail(ErrorCode::internal, "a node's list of files is malformed");
  }
}

std::string format_file_list(const FolderPage& page) {
  Json entries = Json::array();
  for (const FolderEntry& entry : page.entries)
    entries.push_back({{"name", entry.name},
                       {"kind", entry.kind},
                       {"size", entry.size},
                       {"modified", format_time(entry.modified_at)}});
  Json json{{"entries", std::move(entries)}};
  if (page.next) json["next"] = *page.next;
  return dump_any(json);
}

Result<std::uint64_t> parse_file_size(std::string_view answer) {
  if (answer.empty() || answer[0] == 2) return fail(error_of(answer.empty() ? answer : answer.substr(1)));
  const Json json = Json::parse(answer.substr(1), nullptr, false);
  if (!json.is_object() || !json.contains("size") || !json.at("size").is_number_unsigned())
    return fail(ErrorCode::internal, "a node's answer about a file is malformed");
  return json.at("size").get<std::uint64_t>();
}

std::string format_file(const std::string& path, std::string_view kind, std::uint64_t size,
                        TimePoint modified_at) {
  return Json{
      {"path", to_utf8(path)}, {"kind", kind}, {"size", size}, {"modified_at", format_time(modified_at)}}
      .dump();
}

}  // namespace slipway::wire
