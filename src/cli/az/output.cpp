#include "cli/az/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/render.h"
#include "jmespath/jmespath.h"

namespace slipway::cli::az {
namespace {

std::string text_of(const Json& value, std::string_view null) {
  if (value.is_null()) return std::string(null);
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return std::to_string(value.size());
  return value.is_object() ? std::string() : value.dump();
}

std::string format_json(const Json& value) {
  // az sorts its keys, at every level.
  return nlohmann::json(value).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// Keys blue, texts yellow, the rest as it is; escapes and all, as dump() wrote them.
std::string coloured(const std::string& json) {
  std::string out;
  for (std::size_t i = 0; i < json.size();) {
    if (json[i] != '"') {
      out += json[i++];
      continue;
    }
    std::size_t end = i + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    const bool is_key = end + 1 < json.size() && json[end + 1] == ':';
    out += (is_key ? "\033[34m" : "\033[33m") + json.substr(i, end + 1 - i) + "\033[0m";
    i = end + 1;
  }
  return out;
}

// As it is for programs; nothing that steers a terminal.
std::string plain(const std::string& text) { return is_terminal(STDOUT_FILENO) ? printable(text) : text; }

std::string tsv_row(const Json& row) {
  if (!row.is_structured()) return plain(text_of(row, "None")) + "\n";
  std::string line;
  bool first = true;
  for (const Json& value : row)
    line += (std::exchange(first, false) ? "" : "\t") + plain(text_of(value, "None"));
  return line + "\n";
}

std::string format_tsv(const Json& value) {
  if (!value.is_array()) return tsv_row(value);
  std::string text;
  for (const Json& row : value) text += tsv_row(row);
  return text;
}

std::string format_names(const Json& value) {
  if (value.is_object()) return plain(text_at(value, {"name"})) + "\n";
  if (!value.is_array()) return plain(text_of(value, "")) + "\n";
  std::string text;
  for (const Json& item : value) text += format_names(item);
  return text;
}

// Columns of an answer nobody made a table for: what is no object or list, the first letter a capital.
std::vector<ColumnOf> columns_of(const Json& rows) {
  std::vector<std::string> keys;
  std::size_t cells = 0;
  for (const Json& row : rows) {
    if (row.is_array()) cells = std::max(cells, row.size());
    if (!row.is_object()) continue;
    for (const auto& [key, value] : row.items())
      if (!value.is_structured() && key != "id" && key != "type" && key != "etag" &&
          std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  }
  std::vector<ColumnOf> columns;
  const auto title = [](std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  };
  columns.reserve(keys.size() + cells);
  for (const std::string& key : keys)
    columns.push_back({title(key), [key](const Json& row) {
                         const auto found = row.is_object() ? row.find(key) : row.end();
                         return !row.is_object() || found == row.end() ? "" : text_of(*found, "");
                       }});
  for (std::size_t i = 0; i < cells; ++i)
    columns.push_back({title(fmt::format("Column{}", i + 1)), [i](const Json& row) {
                         return row.is_array() && i < row.size() ? text_of(row[i], "") : std::string();
                       }});
  if (columns.empty()) columns.push_back({"Result", [](const Json& row) { return text_of(row, ""); }});
  return columns;
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.-") == std::string::npos;
}

// A header, a line of dashes, and the rows: scripts cut off the first two lines.
std::string format_table(const Json& value, const std::vector<ColumnOf>& given) {
  const Json rows = value.is_array() ? value : Json::array({value});
  if (rows.empty()) return {};
  const std::vector<ColumnOf> columns = given.empty() ? columns_of(rows) : given;
  std::vector<std::vector<std::string>> lines(2);
  std::vector<std::size_t> widths;
  std::vector<bool> right(columns.size(), true);
  lines[0].reserve(columns.size());
  for (const ColumnOf& column : columns) lines[0].push_back(column.title);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const ColumnOf& column : columns) cells.push_back(printable(column.cell(row)));
    lines.push_back(std::move(cells));
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = width_of(lines[0][i]) + 2;  // as az has it
    bool any = false;
    for (std::size_t row = 2; row < lines.size(); ++row) width = std::max(width, width_of(lines[row][i]));
    for (std::size_t row = 2; row < lines.size(); ++row) {
      any = any || !lines[row][i].empty();
      right[i] = right[i] && (lines[row][i].empty() || is_number(lines[row][i]));
    }
    right[i] = right[i] && any;
    widths.push_back(width);
    lines[1].emplace_back(width, '-');
  }
  std::string text;
  for (const auto& line : lines) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string space(widths[i] - width_of(line[i]), ' ');
      out += (i == 0 ? "" : "  ") + (right[i] ? space + line[i] : line[i] + space);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

}  // namespace

Json with_fields(const Json& value, const Json& fields) {
  if (value.is_array() && fields.is_array() && !fields.empty()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(with_fields(item, fields[0]));
    return out;
  }
  if (!value.is_object() || !fields.is_object()) return value;
  Json out = value;
  for (const auto& [key, inner] : fields.items()) {
    const auto found = out.find(key);
    if (found == out.end())
      out[key] = nullptr;
    else
      *found = with_fields(*found, inner);
  }
  return out;
}

Json flattened(const Json& resource, const View& view) {
  if (!resource.is_object() || view.fields == nullptr) return resource;
  Json out = Json::object();
  for (const auto& [key, value] : resource.items())
    if (key != "properties") out[key] = value;
  if (const auto inner = resource.find("properties"); inner != resource.end() && inner->is_object())
    for (const auto& [key, value] : inner->items()) out[key] = value;
  out = with_fields(out, Json::parse(view.fields));
  if (const std::string id = text_at(out, {"id"}); !id.empty()) {
    const std::string group = part_of_id(id, "resourcegroups");
    if (!group.empty()) out["resourceGroup"] = group;
  }
  return out;
}

std::string format_answer(const Json& value, const std::string& form, const View& view, bool queried) {
  if (value.is_null() || form == "none") return {};
  if (form == "table") return format_table(value, queried ? std::vector<ColumnOf>() : view.columns);
  if (form == "tsv") return format_tsv(value);
  if (form == "quiet") return format_names(value);
  const std::string json = format_json(value);
  return form == "jsonc" && render_options(STDOUT_FILENO).colour ? coloured(json) : json;
}

Outcome<int> answer(Context& context, const Common& common, const View& view, const Work& work) {
  std::optional<jmespath::Query> query;
  if (!common.query.empty()) {
    Result<jmespath::Query> parsed = jmespath::Query::parse(common.query);
    if (!parsed) {
      Failure failure = to_failure(parsed.error());
      failure.exit_code = ExitCode::usage;
      return give_up(std::move(failure));
    }
    query = std::move(*parsed);
  }
  Outcome<Arm> arm = Arm::open(context, common);
  if (!arm) return give_up(arm);
  const Outcome<Json> given = work(*arm);
  if (!given) return give_up(given);
  Json value = *given;
  if (value.is_array())
    for (Json& item : value) item = flattened(item, view);
  else
    value = flattened(value, view);
  if (query && !value.is_null()) {
    const Result<std::string> queried = query->apply(wire::dump(value));
    if (!queried) return give_up(queried);
    value = Json::parse(*queried);
  }
  write_out(format_answer(value, context.settings().output, view, query.has_value()));
  return ExitCode::done;
}

}  // namespace slipway::cli::az
