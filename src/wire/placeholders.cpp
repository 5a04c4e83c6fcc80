#include "wire/placeholders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "wire/document.h"

namespace slipway::wire {
namespace {

// As launch/ has them, those of the toolkits last.
const std::vector<std::string> known{
    "rank",         "world_size",  "local_rank",  "index",       "attempt",    "node",      "job",
    "task",         "role",        "hosts",       "master",      "gpus",       "mpi_hosts", "ps_hosts",
    "worker_hosts", "chief_hosts", "master_addr", "master_port", "coordinator"};

bool is_name(char c, bool first) {
  return (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

std::string_view name_at(std::string_view text, std::size_t brace) {
  std::size_t end = brace + 1;
  while (end < text.size() && is_name(text[end], end == brace + 1)) ++end;
  return end < text.size() && text[end] == '}' ? text.substr(brace + 1, end - brace - 1) : std::string_view();
}

std::string_view first_unknown(std::string_view text) {
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const bool is_literal = at > 0 && (text[at - 1] == '$' || text[at - 1] == '{');
    const std::string_view name = is_literal ? std::string_view() : name_at(text, at);
    if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) return name;
  }
  return {};
}

// Every scalar at or below `value`.
Result<void> check(const Value& value, std::string_view document, int line) {
  if (value.line > 0) line = value.line;
  const int column = value.line > 0 ? value.column : 0;
  if (const std::string_view name = first_unknown(value.text); !name.empty()) {
    const std::string close = nearest(name, known);
    return fail(
        ErrorCode::invalid,
        fmt::format("{}there is no placeholder {{{}}}\nthe placeholders are {}",
                    place_in(document, line, column), name, fmt::join(known, ", ")),
        fmt::format("{}{{{{{}}}}} is a literal {{{}}}",
                    close.empty() ? std::string() : fmt::format("did you mean {{{}}}? ", close), name, name));
  }
  for (const Value& item : value.items)
    if (auto checked = check(item, document, line); !checked) return checked;
  for (const auto& [key, inner] : value.fields)
    if (auto checked = check(inner, document, line); !checked) return checked;
  return {};
}

}  // namespace

Result<void> check_placeholders(const Value& job_file, std::string_view document) {
  for (const Value& task : job_file.items_at("tasks")) {
    for (const char* key : {"command", "process_environment", "texts"})
      if (auto checked = check(task.at(key), document, task.line); !checked) return checked;
    for (const auto& [name, role] : task.at("roles").fields)
      if (auto checked = check(role.at("command"), document, role.line); !checked) return checked;
  }
  return {};
}

}  // namespace slipway::wire
