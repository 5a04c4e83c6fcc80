#include "train/state/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/file.h"
#include "train/data/bytes.h"

namespace slipway::train {
namespace {

constexpr char magic[] = "SLPWTRN1";
constexpr std::size_t alignment = 64;
constexpr std::size_t header_max = std::size_t{1} << 20;
constexpr std::uint64_t floats_max = std::uint64_t{1} << 33;

std::size_t aligned(std::size_t size) { return (size + alignment - 1) / alignment * alignment; }

struct Section {
  std::string name;
  std::uint64_t offset = 0, floats = 0;
  std::uint32_t crc = 0;
};

std::string header_text(const CheckpointInfo& info, const std::vector<Section>& sections) {
  std::string text =
      fmt::format("model {}\ndataset {}\nclasses {}\nstep {}\nseed {}\nworkers {}\nbatch {}\n", info.model,
                  info.dataset, info.classes, info.step, info.seed, info.workers, info.batch);
  if (!info.optimizer.empty()) text += fmt::format("optimizer {}\n", info.optimizer);
  text += fmt::format("shard {}\nshards {}\naccuracy {}\n", info.shard, info.shards, info.accuracy);
  // Fixed width, so that the header's length does not depend on the offsets it names.
  for (const Section& section : sections)
    text += fmt::format("section {} {:020} {:020} {:08x}\n", section.name, section.offset, section.floats,
                        section.crc);
  return text;
}

template <class T>
bool read_number(std::string_view text, T& to, int base = 10) {
  std::from_chars_result end{};
  if constexpr (std::is_floating_point_v<T>)
    end = std::from_chars(text.data(), text.data() + text.size(), to);
  else
    end = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool read_section(std::string_view text, Section& section) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (words.size() != 4) return false;
  section.name = words[0];
  return read_number(words[1], section.offset) && read_number(words[2], section.floats) &&
         read_number(words[3], section.crc, 16);
}

bool read_line(std::string_view key, std::string_view value, CheckpointInfo& info,
               std::vector<Section>& sections) {
  if (key == "model") return info.model = value, true;
  if (key == "dataset") return info.dataset = value, true;
  if (key == "optimizer") return info.optimizer = value, true;
  if (key == "classes") return read_number(value, info.classes) && info.classes > 0 && info.classes < 100'000;
  if (key == "step") return read_number(value, info.step);
  if (key == "seed") return read_number(value, info.seed);
  if (key == "workers") return read_number(value, info.workers);
  if (key == "batch") return read_number(value, info.batch);
  if (key == "shard") return read_number(value, info.shard);
  if (key == "shards") return read_number(value, info.shards);
  if (key == "accuracy") return read_number(value, info.accuracy);
  if (key == "section") return sections.emplace_back(), read_section(value, sections.back());
  return true;  // a key of a later version that this one can do without
}

tl::unexpected<Error> damaged(const std::string& name, const std::string& why) {
  return fail(ErrorCode::invalid, fmt::format("checkpoint {}: {}", name, why), "use an earlier checkpoint");
}

Result<void> read_section_into(std::span<const std::uint8_t> bytes, const Section& section,
                               const std::string& name, std::vector<float>& to) {
  if (section.floats > floats_max || section.offset % alignment != 0 || section.offset > bytes.size() ||
      section.floats * sizeof(float) > bytes.size() - section.offset)
    return damaged(name, fmt::format("it is cut off: {} bytes are there, and its {} need more", bytes.size(),
                                     section.name));
  const std::uint8_t* from = bytes.data() + section.offset;
  const std::size_t size = section.floats * sizeof(float);
  if (const std::uint32_t crc = crc32c(from, size); crc != section.crc)
    return damaged(name, fmt::format("its {} are damaged (checksum {:08x}, written with {:08x})",
                                     section.name, crc, section.crc));
  to.resize(section.floats);
  if (size > 0) std::memcpy(to.data(), from, size);
  return {};
}

// Removes the half-written file unless the write came to its end.
struct Beside {
  std::string path;
  bool done = false;
  ~Beside() {
    if (!done) ::unlink(path.c_str());
  }
};

Result<void> write_parts(int fd, std::vector<iovec> parts, const std::string& path) {
  std::size_t first = 0;
  while (first < parts.size()) {
    const ssize_t put = ::writev(fd, parts.data() + first, static_cast<int>(parts.size() - first));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(system_error("cannot write " + path, errno));
    auto left = static_cast<std::size_t>(put);
    while (first < parts.size() && left >= parts[first].iov_len) left -= parts[first++].iov_len;
    if (first < parts.size()) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + left;
      parts[first].iov_len -= left;
    }
  }
  return {};
}

}  // namespace

Result<Checkpoint> parse_checkpoint(std::span<const std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() < 16 || std::memcmp(bytes.data(), magic, 8) != 0)
    return fail(ErrorCode::invalid, name + " is not a Slipway checkpoint or model",
                "such files begin with SLPWTRN1");
  std::uint32_t length = 0, crc = 0;
  std::memcpy(&length, bytes.data() + 8, 4);
  std::memcpy(&crc, bytes.data() + 12, 4);
  if (length > header_max || length > bytes.size() - 16)
    return damaged(name, "it is cut off inside its header");
  if (crc32c(bytes.data() + 16, length) != crc) return damaged(name, "its header is damaged");
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 16, length);
  Checkpoint checkpoint;
  std::vector<Section> sections;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view value = line.substr(std::min(space + 1, line.size()));
    if (!read_line(line.substr(0, space), value, checkpoint.info, sections))
      return damaged(name, fmt::format("its header line `{}` makes no sense", line.substr(0, 80)));
  }
  for (const Section& section : sections) {
    if (section.name != "values" && section.name != "state") continue;
    std::vector<float>& to = section.name == "values" ? checkpoint.values : checkpoint.state;
    if (auto read = read_section_into(bytes, section, name, to); !read) return fail(read.error());
  }
  return checkpoint;
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  const auto bytes = map_file(path);
  if (!bytes) return fail(bytes.error());
  return parse_checkpoint(bytes->view, path);
}

Result<void> write_checkpoint(const std::string& path, const CheckpointInfo& info,
                              std::span<const float> values, std::span<const float> state,
                              const std::string& recycle) {
  std::vector<Section> sections = {{"values", 0, values.size(), crc32c(values.data(), values.size_bytes())},
                                   {"state", 0, state.size(), crc32c(state.data(), state.size_bytes())}};
  std::size_t at = aligned(16 + header_text(info, sections).size());
  for (Section& section : sections) {
    section.offset = at;
    at = aligned(at + section.floats * sizeof(float));
  }
  const std::string text = header_text(info, sections);
  std::string head(magic, 8);
  const auto length = static_cast<std::uint32_t>(text.size());
  const std::uint32_t crc = crc32c(text.data(), text.size());
  head.append(reinterpret_cast<const char*>(&length), 4)
      .append(reinterpret_cast<const char*>(&crc), 4)
      .append(text);
  head.resize(aligned(head.size()), '\0');

  Beside beside{fmt::format("{}.{}.new", path, ::getpid())};
  if (!recycle.empty())
    ::rename(recycle.c_str(), beside.path.c_str());  // when it is gone, we just begin afresh
  const Fd fd(::open(beside.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return fail(system_error("cannot create " + beside.path, errno));
  static const char zeros[alignment] = {};
  const auto part = [](const void* data, std::size_t size) { return iovec{const_cast<void*>(data), size}; };
  std::vector<iovec> parts = {part(head.data(), head.size())};
  for (const std::span<const float> section : {values, state}) {
    parts.push_back(part(section.data(), section.size_bytes()));
    parts.push_back(part(zeros, aligned(section.size_bytes()) - section.size_bytes()));
  }
  if (auto written = write_parts(fd.get(), std::move(parts), path); !written) return written;
  if (::ftruncate(fd.get(), static_cast<off_t>(at)) != 0 || ::fsync(fd.get()) != 0 ||
      ::rename(beside.path.c_str(), path.c_str()) != 0)
    return fail(system_error("cannot write " + path, errno));
  beside.done = true;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Fd parent(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return fail(system_error("cannot sync " + folder, errno));
  return {};
}

std::string CheckpointFolder::file(std::uint64_t step) const {
  return fmt::format("{}/step-{:012}.ckpt", path_, step);
}

std::vector<std::uint64_t> CheckpointFolder::steps() const {
  std::vector<std::uint64_t> found;
  std::error_code error;  // no folder yet: no checkpoints
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t step = 0;
    if (name.starts_with("step-") && name.ends_with(".ckpt") &&
        read_number(std::string_view(name).substr(5, name.size() - 10), step))
      found.push_back(step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<void> CheckpointFolder::save(const CheckpointInfo& info, std::span<const float> values,
                                    std::span<const float> state) {
  if (auto made = make_folders(path_); !made) return made;
  // A run that went back to an earlier step must not find the future it abandoned at its next restart.
  std::vector<std::uint64_t> before = steps();
  std::erase_if(before,
                [&](std::uint64_t step) { return step > info.step && ::unlink(file(step).c_str()) == 0; });
  std::erase(before, info.step);
  std::string recycle;
  if (before.size() >= static_cast<std::size_t>(keep_)) recycle = file(before.front());
  if (auto written = write_checkpoint(file(info.step), info, values, state, recycle); !written)
    return written;
  for (std::size_t i = 1; i + static_cast<std::size_t>(keep_) <= before.size(); ++i)
    ::unlink(file(before[i]).c_str());
  return {};
}

Result<Checkpoint> CheckpointFolder::load(std::uint64_t step) const { return read_checkpoint(file(step)); }

std::optional<Checkpoint> CheckpointFolder::load_newest(std::vector<Error>& passed_over) const {
  const std::vector<std::uint64_t> found = steps();
  for (auto step = found.rbegin(); step != found.rend(); ++step) {
    auto checkpoint = load(*step);
    if (checkpoint) return std::move(*checkpoint);
    passed_over.push_back(checkpoint.error());
  }
  return std::nullopt;
}

}  // namespace slipway::train
