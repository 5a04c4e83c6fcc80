#include "train/state/events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/crc32c.h"
#include "base/sha256.h"
#include "train/state/protobuf.h"

namespace slipway::train {
namespace {

constexpr int type_float = 1, type_double = 2;     // of tensors
constexpr int class_scalar = 1, class_tensor = 2;  // how TensorBoard treats a tag's data

void append_masked_crc(std::string& to, std::string_view of) {
  const std::uint32_t crc = crc32c(of.data(), of.size());
  const std::uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8U;
  to.append(reinterpret_cast<const char*>(&masked), 4);
}

Message event(double wall_time, std::uint64_t step) {
  Message message;
  message.real(1, wall_time);
  if (step > 0) message.integer(2, step);
  return message;
}

Message metadata(std::string_view plugin, int data_class, std::string_view content = {}) {
  Message plugin_data;
  plugin_data.bytes(1, plugin);
  if (!content.empty()) plugin_data.bytes(2, content);
  Message meta;
  meta.message(1, plugin_data).integer(4, static_cast<std::uint64_t>(data_class));
  return meta;
}

Message tensor(int type, const std::vector<std::uint64_t>& shape, std::string_view content) {
  Message dims;
  for (const std::uint64_t side : shape) {
    Message dim;
    if (side > 0) dim.integer(1, side);
    dims.message(2, dim);
  }
  Message made;
  made.integer(1, static_cast<std::uint64_t>(type)).message(2, dims);
  if (!content.empty()) made.bytes(4, content);
  return made;
}

std::string with_value(Message to, std::string_view tag, const Message& content, const Message& meta) {
  Message value;
  value.bytes(1, tag).message(8, content).message(9, meta);
  Message summary;
  summary.message(1, value);
  return to.message(5, summary).str();
}

}  // namespace

std::string event_record(std::string_view data) {
  const std::uint64_t size = data.size();
  std::string record(reinterpret_cast<const char*>(&size), 8);
  append_masked_crc(record, record);
  record += data;
  append_masked_crc(record, data);
  return record;
}

std::vector<HistogramRow> histogram(std::span<const float> values, int buckets) {
  std::vector<HistogramRow> rows(static_cast<std::size_t>(buckets), HistogramRow{0, 0, 0});
  if (values.empty()) return rows;
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const double low = *least, high = *largest, width = (high - low) / buckets;
  for (int i = 0; i < buckets; ++i)
    rows[static_cast<std::size_t>(i)] = {low + i * width, i + 1 == buckets ? high : low + (i + 1) * width, 0};
  for (const float value : values) {
    const int at = width > 0 ? static_cast<int>((value - low) / width) : buckets - 1;
    rows[static_cast<std::size_t>(std::clamp(at, 0, buckets - 1))].count += 1;
  }
  return rows;
}

Result<EventFile> EventFile::create(const std::string& folder, double wall_time) {
  if (auto made = make_folders(folder); !made) return fail(made.error());
  char host[65] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const std::string path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.0", folder,
                                       static_cast<long>(wall_time), host, ::getpid());
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return fail(system_error("cannot create " + path, errno));
  EventFile file(std::move(fd), path);
  Message writer;
  writer.bytes(1, "slipway-train");
  if (auto put = file.put(event(wall_time, 0).bytes(3, "brain.Event:2").message(10, writer).str()); !put)
    return fail(put.error());
  return file;
}

Result<void> EventFile::put(const std::string& data) {
  return write_all(fd_.get(), event_record(data), path_);
}

Result<void> EventFile::scalar(double wall_time, std::uint64_t step, std::string_view tag, float value) {
  const std::string_view content(reinterpret_cast<const char*>(&value), sizeof value);
  return put(with_value(event(wall_time, step), tag, tensor(type_float, {}, content),
                        metadata("scalars", class_scalar)));
}

Result<void> EventFile::histogram(double wall_time, std::uint64_t step, std::string_view tag,
                                  std::span<const float> values) {
  const std::vector<HistogramRow> rows = train::histogram(values);
  static_assert(sizeof(HistogramRow) == 3 * sizeof(double));
  const std::string_view content(reinterpret_cast<const char*>(rows.data()),
                                 rows.size() * sizeof(HistogramRow));
  return put(with_value(event(wall_time, step), tag, tensor(type_double, {rows.size(), 3}, content),
                        metadata("histograms", class_tensor)));
}

Result<void> EventFile::hyperparameters(double wall_time, const std::map<std::string, HyperValue>& values) {
  Message start;
  std::string names;
  for (const auto& [name, held] : values) {
    Message value;  // google.protobuf.Value
    if (const auto* number = std::get_if<double>(&held)) value.real(2, *number);
    if (const auto* text = std::get_if<std::string>(&held)) value.bytes(3, *text);
    if (const auto* flag = std::get_if<bool>(&held)) value.integer(4, *flag ? 1 : 0);
    Message entry;
    entry.bytes(1, name).message(2, value);
    start.message(1, entry);
    names += name + "=" + value.str() + ";";
  }
  start.bytes(4, sha256_hex(names)).real(5, wall_time);
  Message plugin;
  plugin.message(3, start);
  const Message empty = tensor(type_float, {0}, {});
  return put(with_value(event(wall_time, 0), "_hparams_/session_start_info", empty,
                        metadata("hparams", class_tensor, plugin.str())));
}

Result<void> EventFile::restarted_at(double wall_time, std::uint64_t step) {
  Message session;
  session.integer(1, 1);  // START: readers drop what they have at or beyond this step
  return put(event(wall_time, step).message(7, session).str());
}

}  // namespace slipway::train
