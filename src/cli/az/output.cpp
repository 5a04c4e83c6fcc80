#include "cli/az/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/output/render.h"
#include "jmespath/jmespath.h"

namespace slipway::cli::az {
namespace {

std::string text_of(const Value& value, std::string_view null) {
  if (value.is_null()) return std::string(null);
  if (value.kind == Value::Kind::boolean) return value.is_true() ? "True" : "False";
  return value.is_list() ? std::to_string(value.items.size()) : value.scalar();
}

// az sorts its keys, at every level.
Value sorted(Value value) {
  std::sort(value.fields.begin(), value.fields.end(),
            [](const Value::Field& a, const Value::Field& b) { return a.first < b.first; });
  for (auto& [key, inner] : value.fields) inner = sorted(std::move(inner));
  for (Value& item : value.items) item = sorted(std::move(item));
  return value;
}

bool is_structured(const Value& value) { return value.is_list() || value.is_map(); }

// Keys blue, texts yellow, the rest as it is; escapes and all, as they were written.
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

// Unchanged for programs; without control codes on a terminal.
std::string plain(const std::string& text) { return is_terminal(STDOUT_FILENO) ? printable(text) : text; }

std::string tsv_row(const Value& row) {
  if (!is_structured(row)) return plain(text_of(row, "None")) + "\n";
  std::vector<std::string> cells;
  for (const Value& value : row.items) cells.push_back(plain(text_of(value, "None")));
  for (const auto& [key, value] : row.fields) cells.push_back(plain(text_of(value, "None")));
  return fmt::format("{}\n", fmt::join(cells, "\t"));
}

std::string format_tsv(const Value& value) {
  if (!value.is_list()) return tsv_row(value);
  std::string text;
  for (const Value& row : value.items) text += tsv_row(row);
  return text;
}

std::string format_names(const Value& value) {
  if (value.is_map()) return plain(text_at(value, {"name"})) + "\n";
  if (!value.is_list()) return plain(text_of(value, "")) + "\n";
  std::string text;
  for (const Value& item : value.items) text += format_names(item);
  return text;
}

// Columns of an answer without a table of its own: its scalars, with capitalised titles.
std::vector<ColumnOf> columns_of(const std::vector<Value>& rows) {
  std::vector<std::string> keys;
  std::size_t cells = 0;
  for (const Value& row : rows) {
    cells = std::max(cells, row.items.size());
    for (const auto& [key, value] : row.fields)
      if (!is_structured(value) && key != "id" && key != "type" && key != "etag" &&
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
    columns.push_back({title(key), [key](const Value& row) { return text_of(row.at(key), ""); }});
  for (std::size_t i = 0; i < cells; ++i)
    columns.push_back({title(fmt::format("Column{}", i + 1)), [i](const Value& row) {
                         return i < row.items.size() ? text_of(row.items[i], "") : std::string();
                       }});
  if (columns.empty()) columns.push_back({"Result", [](const Value& row) { return text_of(row, ""); }});
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
std::string format_table(const Value& value, const std::vector<ColumnOf>& given) {
  const std::vector<Value> rows = value.is_list() ? value.items : std::vector<Value>(1, value);
  if (rows.empty()) return {};
  const std::vector<ColumnOf> columns = given.empty() ? columns_of(rows) : given;
  std::vector<std::vector<std::string>> lines(2);
  std::vector<std::size_t> widths;
  std::vector<bool> right(columns.size(), true);
  lines[0].reserve(columns.size());
  for (const ColumnOf& column : columns) lines[0].push_back(column.title);
  for (const Value& row : rows) {
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

Value known_fields(const View& view) {
  return view.fields == nullptr ? Value() : wire::parse_answer(view.fields).value_or(Value());
}

Value with_fields(const Value& value, const Value& fields) {
  if (value.is_list() && !fields.items.empty()) {
    Value out = Value::list();
    for (const Value& item : value.items) out.items.push_back(with_fields(item, fields.items[0]));
    return out;
  }
  if (!value.is_map() || !fields.is_map()) return value;
  Value out = value;
  for (const auto& [key, inner] : fields.fields) {
    Value& field = out[key];
    field = with_fields(field, inner);
  }
  return out;
}

Value flattened(const Value& resource, const View& view) {
  if (!resource.is_map() || view.fields == nullptr) return resource;
  Value out = Value::map();
  for (const auto& [key, value] : resource.fields)
    if (key != "properties") out[key] = value;
  for (const auto& [key, value] : resource.at("properties").fields) out[key] = value;
  out = with_fields(out, known_fields(view));
  if (const std::string id = text_at(out, {"id"}); !id.empty()) {
    const std::string group = part_of_id(id, "resourcegroups");
    if (!group.empty()) out["resourceGroup"] = group;
  }
  return out;
}

std::string format_answer(const Value& value, const std::string& form, const View& view, bool queried) {
  if (value.is_null() || form == "none") return {};
  if (form == "table") return format_table(value, queried ? std::vector<ColumnOf>() : view.columns);
  if (form == "tsv") return format_tsv(value);
  if (form == "quiet") return format_names(value);
  const std::string json = wire::format_json_indented(sorted(value)) + "\n";
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
  const Outcome<Value> given = work(*arm);
  if (!given) return give_up(given);
  Value value = *given;
  if (value.is_list())
    for (Value& item : value.items) item = flattened(item, view);
  else
    value = flattened(value, view);
  if (query && !value.is_null()) {
    const Result<std::string> queried = query->apply(wire::format_json(value));
    if (!queried) return give_up(queried);
    value = wire::parse_answer(*queried).value_or(Value());
  }
  write_out(format_answer(value, context.settings().output, view, query.has_value()));
  return ExitCode::done;
}

}  // namespace slipway::cli::az
