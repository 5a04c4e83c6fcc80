#include "track/run_points.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>

#include "base/file.h"
#include "track/view.h"

namespace slipway::track {
namespace {

class MappedFile {  // a file's first bytes, as they are
 public:
  MappedFile(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept : at_(std::exchange(other.at_, nullptr)), size_(other.size_) {}
  ~MappedFile() {
    if (at_) ::munmap(at_, size_);
  }

  static Result<MappedFile> open(const std::string& path, std::uint64_t size) {
    if (size == 0) return MappedFile(nullptr, 0);
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail(system_error("cannot open " + path, errno));
    struct stat about {};
    if (::fstat(file.get(), &about) != 0) return fail(system_error("cannot read " + path, errno));
    if (static_cast<std::uint64_t>(about.st_size) < size)  // a read behind the end would stop the process
      return fail(ErrorCode::internal,
                  fmt::format("{} is damaged: it has {} bytes of {}", path, about.st_size, size),
                  "restore the data folder from a backup");
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) return fail(system_error("cannot read " + path, errno));
    return MappedFile(at, size);
  }
  std::string_view bytes() const { return {static_cast<const char*>(at_), size_}; }

 private:
  MappedFile(void* at, std::uint64_t size) : at_(at), size_(size) {}
  void* at_;
  std::size_t size_;
};

Error damaged_series(const Series& series, std::uint64_t offset) {
  return {ErrorCode::internal, fmt::format("{} is damaged at byte {}", series.path, offset),
          "restore the data folder from a backup"};
}

// Where the metric's blocks lie, in the order in which they were written.
Result<std::vector<PlacedBlock>> summaries_of(const Series& series, std::string_view bytes) {
  std::vector<PlacedBlock> blocks;
  if (series.knows_blocks) {
    for (const BlockPlace& place : series.blocks) {
      auto summary = read_summary(bytes.substr(place.offset, place.size));
      if (!summary) return fail(damaged_series(series, place.offset));
      blocks.push_back({std::move(*summary), place.offset});
    }
    return blocks;
  }
  std::uint64_t offset = 0;
  for (PlacedBlock& block : read_blocks(bytes)) {
    offset = block.offset + block.summary.size;
    if (block.summary.key == series.key) blocks.push_back(std::move(block));
  }
  if (offset != bytes.size()) return fail(damaged_series(series, offset));
  return blocks;
}

bool is_in_order(const std::vector<PlacedBlock>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i].summary.is_sorted) return false;
    if (i > 0 && is_before(blocks[i].summary.first, blocks[i - 1].summary.last)) return false;
  }
  return true;
}

Stretch stretch_of_block(const BlockSummary& summary) {
  return {summary.count, summary.numbers > 0, summary.lowest, summary.highest, summary.first, summary.last};
}

Result<void> write_at(int fd, std::string_view bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(system_error("cannot write " + path, written < 0 ? errno : EIO));
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<Fd> open_for_writing(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file && errno == ENOENT) {
    if (auto made = make_folders(std::filesystem::path(path).parent_path().string(), 0700); !made)
      return fail(made.error());
    file = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  if (!file) return fail(system_error("cannot open " + path, errno));
  return file;
}

}  // namespace

Result<std::vector<Point>> read_series(const Series& series) {
  auto file = MappedFile::open(series.path, series.file_size);
  if (!file) return fail(file.error());
  auto blocks = summaries_of(series, file->bytes());
  if (!blocks) return fail(blocks.error());
  std::vector<Point> points;
  for (const PlacedBlock& block : *blocks)
    if (!read_points(file->bytes().substr(block.offset), points))
      return fail(damaged_series(series, block.offset));
  points.insert(points.end(), series.tail.begin(), series.tail.end());
  if (!std::is_sorted(points.begin(), points.end(), is_before))
    std::stable_sort(points.begin(), points.end(), is_before);
  return points;
}

Result<std::vector<Point>> read_view(const Series& series, std::size_t limit) {
  auto file = MappedFile::open(series.path, series.file_size);
  if (!file) return fail(file.error());
  auto blocks = summaries_of(series, file->bytes());
  if (!blocks) return fail(blocks.error());
  const bool tail_is_last = std::is_sorted(series.tail.begin(), series.tail.end(), is_before) &&
                            (blocks->empty() || series.tail.empty() ||
                             !is_before(series.tail.front(), blocks->back().summary.last));
  std::vector<Stretch> stretches;
  // A block for each bucket at least, so that none of them is much longer than another.
  if (blocks->size() >= limit / 2 && is_in_order(*blocks) && tail_is_last) {
    for (const PlacedBlock& block : *blocks) stretches.push_back(stretch_of_block(block.summary));
    for (const Point& point : series.tail) stretches.push_back(stretch_of(point));
    return peaks_of(stretches, limit);
  }
  auto points = read_series(series);
  if (!points) return points;
  for (const Point& point : *points) stretches.push_back(stretch_of(point));
  return peaks_of(stretches, limit);
}

RunPoints::RunPoints(std::string path, std::uint64_t file_size)
    : path_(std::move(path)), file_size_(file_size), is_loaded_(file_size == 0) {}

RunPoints::Placed RunPoints::placed_at(std::uint64_t offset, const BlockSummary& summary) {
  return {{offset, static_cast<std::uint32_t>(summary.size)},
          summary.step_min,
          summary.step_max,
          summary.time_min,
          summary.time_max};
}

Result<void> RunPoints::load_blocks() {
  auto file = MappedFile::open(path_, file_size_);
  if (!file) return fail(file.error());
  for (const PlacedBlock& block : read_blocks(file->bytes())) {
    unclaimed_[block.summary.key].push_back(placed_at(block.offset, block.summary));
  }
  is_loaded_ = true;
  return {};
}

RunPoints::Tracked& RunPoints::tracked(KeyId key, const std::string& name) {
  Tracked& tracked = tracked_[key];
  if (unclaimed_.empty()) return tracked;
  const auto claimed = unclaimed_.find(name);
  if (claimed == unclaimed_.end()) return tracked;
  tracked.blocks.insert(tracked.blocks.begin(), claimed->second.begin(), claimed->second.end());
  unclaimed_.erase(claimed);
  for (const Placed& block : tracked.blocks)
    if (!tracked.has_last ||
        std::tie(tracked.last.step, tracked.last.timestamp) < std::tie(block.step_max, block.time_max)) {
      tracked.last = {block.step_max, block.time_max, 0};  // at or behind each of its points
      tracked.has_last = true;
    }
  return tracked;
}

Result<bool> RunPoints::has(KeyId key, const std::string& name, const Point& point) {
  if (!is_loaded_)
    if (auto loaded = load_blocks(); !loaded) return fail(loaded.error());
  Tracked& tracked = this->tracked(key, name);
  if (!tracked.has_last) return false;
  if (std::tie(point.step, point.timestamp) > std::tie(tracked.last.step, tracked.last.timestamp))
    return false;
  const auto is_same = [&](const Point& one) { return same_point(one, point); };
  const auto begin = tracked.is_sorted
                         ? std::lower_bound(tracked.tail.begin(), tracked.tail.end(), point, is_before)
                         : tracked.tail.begin();
  const auto end =
      tracked.is_sorted ? std::upper_bound(begin, tracked.tail.end(), point, is_before) : tracked.tail.end();
  if (std::any_of(begin, end, is_same)) return true;
  for (std::size_t i = tracked.blocks.size(); i-- > 0;) {
    const Placed& block = tracked.blocks[i];
    if (point.step < block.step_min || point.step > block.step_max || point.timestamp < block.time_min ||
        point.timestamp > block.time_max)
      continue;
    if (tracked.decoded != i) {
      auto file = MappedFile::open(path_, file_size_);
      if (!file) return fail(file.error());
      tracked.decoded_points.clear();
      tracked.decoded = i;
      if (!read_points(file->bytes().substr(block.place.offset, block.place.size), tracked.decoded_points)) {
        tracked.decoded = SIZE_MAX;
        return fail(ErrorCode::internal, fmt::format("{} is damaged at byte {}", path_, block.place.offset),
                    "restore the data folder from a backup");
      }
      std::sort(tracked.decoded_points.begin(), tracked.decoded_points.end(), is_before);
    }
    if (std::binary_search(tracked.decoded_points.begin(), tracked.decoded_points.end(), point, is_before))
      return true;
  }
  return false;
}

void RunPoints::add(KeyId key, const std::string& name, const Point& point) {
  Tracked& tracked = this->tracked(key, name);
  if (!tracked.tail.empty() && is_before(point, tracked.tail.back())) tracked.is_sorted = false;
  tracked.tail.push_back(point);
  if (!tracked.has_last ||
      std::tie(tracked.last.step, tracked.last.timestamp) < std::tie(point.step, point.timestamp)) {
    tracked.last = point;
    tracked.has_last = true;
  }
  ++generation_;
  // Where the file cannot be written now, the tail grows until it can: the journal has its points.
  if (tracked.tail.size() % block_points == 0) (void)seal(tracked, name);
}

Result<void> RunPoints::seal(Tracked& tracked, const std::string& name) {
  if (!is_loaded_)
    if (auto loaded = load_blocks(); !loaded) return loaded;
  const std::string block = format_block(name, tracked.tail);
  auto file = open_for_writing(path_);
  if (!file) return fail(file.error());
  if (auto written = write_at(file->get(), block, file_size_, path_); !written) return written;
  tracked.blocks.push_back(placed_at(file_size_, *read_summary(block)));
  file_size_ += block.size();
  tracked.tail = {};
  tracked.is_sorted = true;
  return {};
}

std::string RunPoints::format_tails(const Keys& keys) const {
  std::string blocks;
  for (const auto& [key, tracked] : tracked_)
    if (!tracked.tail.empty()) blocks += format_block(keys.name(key), tracked.tail);
  return blocks;
}

void RunPoints::load_tails(std::string_view blocks, Keys& keys) {
  for (const PlacedBlock& block : read_blocks(blocks)) {
    std::vector<Point> points;
    read_points(blocks.substr(block.offset), points);
    Tracked& tracked = tracked_[keys.put(block.summary.key)];
    for (const Point& point : points) {
      tracked.tail.push_back(point);
      if (!tracked.has_last ||
          std::tie(tracked.last.step, tracked.last.timestamp) < std::tie(point.step, point.timestamp))
        tracked.last = point;
      tracked.has_last = true;
    }
    tracked.is_sorted = std::is_sorted(tracked.tail.begin(), tracked.tail.end(), is_before);
  }
  ++generation_;
}

Result<void> RunPoints::flush(const Keys& keys) {
  if (!is_loaded_)
    if (auto loaded = load_blocks(); !loaded) return loaded;
  std::string blocks;
  struct Made {
    Tracked* tracked;
    Placed placed;
  };
  std::vector<Made> made;
  for (auto& [key, tracked] : tracked_) {
    if (tracked.tail.empty()) continue;
    const std::string block = format_block(keys.name(key), tracked.tail);
    made.push_back({&tracked, placed_at(file_size_ + blocks.size(), *read_summary(block))});
    blocks += block;
  }
  if (made.empty()) return {};
  auto file = open_for_writing(path_);
  if (!file) return fail(file.error());
  if (auto written = write_at(file->get(), blocks, file_size_, path_); !written) return written;
  for (const Made& one : made) {
    one.tracked->blocks.push_back(one.placed);
    one.tracked->tail = {};
    one.tracked->is_sorted = true;
  }
  file_size_ += blocks.size();
  return {};
}

Result<void> sync_points_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file || ::fdatasync(file.get()) != 0) return fail(system_error("cannot sync " + path, errno));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Fd parent(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return fail(system_error("cannot sync " + folder, errno));
  return {};
}

Series RunPoints::series(KeyId key, const std::string& name) const {
  Series series{path_, name, file_size_, is_loaded_, {}, {}};
  const auto at = tracked_.find(key);
  if (at != tracked_.end()) {
    for (const Placed& block : at->second.blocks) series.blocks.push_back(block.place);
    series.tail = at->second.tail;
  }
  if (const auto more = unclaimed_.find(name); more != unclaimed_.end())
    for (const Placed& block : more->second) series.blocks.push_back(block.place);
  return series;
}

}  // namespace slipway::track
