#include "serve/scoring.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "serve/tf_answer.h"
#include "serve/tf_request.h"

namespace slipway::serve {
namespace {

// A table as tensors: a model with one input takes all columns as one matrix, one with several each by its
// name.
class Table {
 public:
  explicit Table(const Signature& signature) : signature_(signature) {}

  Answer<void> set_columns(std::vector<std::string> columns) {
    columns_ = std::move(columns);
    if (signature_.inputs.size() == 1) {
      tensors_[signature_.inputs.begin()->first].type = signature_.inputs.begin()->second.type;
      return {};
    }
    for (const auto& [name, spec] : signature_.inputs) {
      if (std::find(columns_.begin(), columns_.end(), name) == columns_.end())
        return invalid(fmt::format("the data has no column {}, which the model takes", name));
      tensors_[name].type = spec.type;
    }
    return {};
  }
  std::size_t width() const { return columns_.size(); }
  const std::vector<std::string>& columns() const { return columns_; }

  // The tensor that a cell of this column goes to; null: no input of that name.
  Tensor* column(std::size_t index) {
    if (signature_.inputs.size() == 1) return &tensors_.begin()->second;
    const auto found = tensors_.find(columns_[index]);
    return found == tensors_.end() ? nullptr : &found->second;
  }
  Answer<void> add_cell(std::size_t index, const JsonValue& value) {
    Tensor* to = column(index);
    return to == nullptr ? Answer<void>() : append_values(value, to->type, *to);
  }
  void end_row() { ++rows_; }

  Answer<Tensors> finish() {
    for (auto& [name, tensor] : tensors_) {
      const auto count = static_cast<std::int64_t>(tensor.count());
      if (rows_ == 0 || count % rows_ != 0) return invalid("the data has no rows, or rows of unlike length");
      tensor.shape = {rows_};
      const bool is_matrix = signature_.inputs.size() == 1 || count != rows_;
      if (is_matrix) tensor.shape.push_back(count / rows_);
    }
    return std::move(tensors_);
  }

 private:
  const Signature& signature_;
  std::vector<std::string> columns_;
  Tensors tensors_;
  std::int64_t rows_ = 0;
};

Answer<Tensors> parse_split(const JsonValue& split, const Signature& signature) {
  const auto columns = split.find("columns"), data = split.find("data");
  if (!data || !data->is_array() || (columns && !columns->is_array()))
    return invalid("dataframe_split is {\"columns\": [...], \"data\": [[...], ...]}");
  std::vector<std::string> names;
  if (columns)
    for (const JsonValue name : columns->children())
      names.push_back(name.is_string() ? name.as_string() : std::string(name.source()));
  else if (data->size() > 0)
    names.resize((*data->children().begin()).size());
  Table table(signature);
  if (auto set = table.set_columns(std::move(names)); !set) return refuse(set.error());
  for (const JsonValue row : data->children()) {
    if (!row.is_array() || row.size() != table.width())
      return invalid(
          fmt::format("a row of dataframe_split has {} values for {} columns", row.size(), table.width()));
    std::size_t index = 0;
    for (const JsonValue cell : row.children())
      if (auto added = table.add_cell(index++, cell); !added) return refuse(added.error());
    table.end_row();
  }
  return table.finish();
}

Answer<Tensors> parse_records(const JsonValue& records, const Signature& signature) {
  if (!records.is_array() || records.size() == 0) return invalid("dataframe_records is no list of objects");
  Table table(signature);
  std::vector<std::string> names;
  const JsonValue first = *records.children().begin();
  if (!first.is_object()) return invalid("dataframe_records is no list of objects");
  const auto members = first.children();
  for (auto member = members.begin(); member != members.end(); ++member) {
    names.push_back((*member).as_string());
    ++member;
  }
  if (auto set = table.set_columns(std::move(names)); !set) return refuse(set.error());
  for (const JsonValue record : records.children()) {
    for (std::size_t i = 0; i < table.width(); ++i) {
      const auto cell = record.find(table.columns()[i]);
      if (!cell)
        return invalid(fmt::format("a record has no {}, which the first one has", table.columns()[i]));
      if (auto added = table.add_cell(i, *cell); !added) return refuse(added.error());
    }
    table.end_row();
  }
  return table.finish();
}

std::string_view take_line(std::string_view& text) {
  const std::size_t size = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::vector<std::string_view> split_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t size = std::min(line.find(','), line.size());
    std::string_view cell = line.substr(0, size);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    const bool is_quoted = cell.size() >= 2 && cell.front() == '"' && cell.back() == '"';
    cells.push_back(is_quoted ? cell.substr(1, cell.size() - 2) : cell);
    if (size == line.size()) return cells;
    line.remove_prefix(size + 1);
  }
}

}  // namespace

Answer<Tensors> parse_scoring_json(std::string_view body, const Signature& signature) {
  const auto json = parse_body(body);
  if (!json) return refuse(json.error());
  const JsonValue root = json->root();
  const char* keys[] = {"inputs", "instances", "dataframe_split", "dataframe_records"};
  int given = 0;
  for (const char* key : keys) given += root.find(key) ? 1 : 0;
  if (given != 1)
    return invalid("the body has exactly one of inputs, instances, dataframe_split and dataframe_records");
  if (const auto split = root.find("dataframe_split")) return parse_split(*split, signature);
  if (const auto records = root.find("dataframe_records")) return parse_records(*records, signature);
  auto predict = parse_predict(root, signature);
  if (!predict) return refuse(predict.error());
  return std::move(predict->tensors);
}

Answer<Tensors> parse_scoring_csv(std::string_view body, const Signature& signature) {
  Table table(signature);
  std::vector<std::string> columns;
  for (const std::string_view name : split_cells(take_line(body))) columns.emplace_back(name);
  if (auto set = table.set_columns(std::move(columns)); !set) return refuse(set.error());
  for (int line = 2; !body.empty(); ++line) {
    const std::string_view text = take_line(body);
    if (text.empty()) continue;
    const auto cells = split_cells(text);
    if (cells.size() != table.width())
      return invalid(fmt::format("line {} has {} values for {} columns", line, cells.size(), table.width()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Tensor* to = table.column(i);
      if (to == nullptr) continue;
      if (to->type == DataType::string) {
        to->strings.emplace_back(cells[i]);
        continue;
      }
      // A number of the text is one of JSON.
      const auto value = Json::parse(cells[i].empty() ? std::string_view("NaN") : cells[i]);
      if (!value || !value->root().is_number())
        return invalid(fmt::format("line {} has `{}`, which is no number", line, cells[i].substr(0, 80)));
      if (auto added = append_values(value->root(), to->type, *to); !added) return refuse(added.error());
    }
    table.end_row();
  }
  return table.finish();
}

std::string format_scoring(const Tensors& outputs) {
  auto columns = format_predict(outputs, BodyFormat::columnar);
  // {"outputs":…} under the other name.
  return columns ? R"({"predictions":)" + columns->substr(std::strlen(R"({"outputs":)"))
                 : format_failure(columns.error().message);
}

}  // namespace slipway::serve
