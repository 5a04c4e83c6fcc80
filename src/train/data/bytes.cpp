#include "train/data/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"

namespace slipway::train {
namespace {

constexpr std::size_t unpacked_size_max = std::size_t{1} << 31;

struct Inflater {  // ends the zlib stream whichever way we leave
  z_stream stream{};
  bool open = false;
  ~Inflater() {
    if (open) inflateEnd(&stream);
  }
};

// Names the unpacked copy by what it was made from, so that a changed source is unpacked again.
std::string cache_path(const std::string& folder, const std::string& source, const struct stat& status) {
  const std::string key =
      fmt::format("{}|{}|{}.{}", source, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  return fmt::format("{}/{}.idx", folder, sha256_hex(key).substr(0, 24));
}

}  // namespace

Result<Bytes8> map_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + path, errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return fail(system_error("cannot read " + path, errno));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid, path + " is not a file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return Bytes8{};
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return fail(system_error("cannot map " + path, errno));
  std::shared_ptr<const void> owner(address, [size](void* mapped) { ::munmap(mapped, size); });
  return Bytes8{{static_cast<const std::uint8_t*>(address), size}, std::move(owner)};
}

Result<std::vector<std::uint8_t>> gunzip(std::span<const std::uint8_t> packed, std::size_t size_max,
                                         const std::string& name) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return fail(ErrorCode::internal, name + ": zlib did not start");
  inflater.open = true;
  std::vector<std::uint8_t> out(std::min(size_max, std::max<std::size_t>(packed.size() * 4, 4096)));
  stream.next_in = const_cast<Bytef*>(packed.data());
  std::size_t taken = 0;
  std::size_t filled = 0;
  for (;;) {
    if (stream.avail_in == 0) {  // zlib counts in 32 bits
      const std::size_t piece = std::min<std::size_t>(packed.size() - taken, std::size_t{1} << 30);
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    if (filled == out.size()) {
      if (out.size() >= size_max)
        return fail(ErrorCode::too_large, fmt::format("{} unpacks to more than {} bytes", name, size_max));
      out.resize(std::min(size_max, out.size() * 2));
    }
    stream.next_out = out.data() + filled;
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size() - filled, std::size_t{1} << 30));
    const uInt free = stream.avail_out;
    const int state = inflate(&stream, Z_NO_FLUSH);
    filled += free - stream.avail_out;
    if (state == Z_STREAM_END) break;
    if (state == Z_BUF_ERROR ||
        (state == Z_OK && stream.avail_in == 0 && taken == packed.size() && stream.avail_out != 0))
      return fail(ErrorCode::invalid, fmt::format("{} is cut off: the gzip data ends early", name),
                  "fetch the file again");
    if (state != Z_OK)
      return fail(ErrorCode::invalid,
                  fmt::format("{} is not valid gzip: {}", name, stream.msg ? stream.msg : "damaged data"),
                  "fetch the file again");
  }
  out.resize(filled);
  return out;
}

Result<Bytes8> open_data_file(const std::string& path, const std::string& cache_folder) {
  if (auto plain = map_file(path); plain || plain.error().code != ErrorCode::not_found) return plain;
  const std::string packed_path = path + ".gz";
  auto packed = map_file(packed_path);
  if (!packed && packed.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, fmt::format("neither {} nor {} exists", path, packed_path),
                "--data names the folder with the files, --data synthetic needs none");
  if (!packed) return packed;

  struct stat status {};
  std::string cached;
  if (!cache_folder.empty() && ::stat(packed_path.c_str(), &status) == 0) {
    cached = cache_path(cache_folder, packed_path, status);
    if (auto ready = map_file(cached)) return ready;
  }
  auto content = gunzip(packed->view, unpacked_size_max, packed_path);
  if (!content) return fail(content.error());
  if (!cached.empty()) {
    const std::string_view text(reinterpret_cast<const char*>(content->data()), content->size());
    const auto saved = make_folders(cache_folder).and_then([&] { return write_file_durably(cached, text); });
    if (saved) return map_file(cached);
    log::debug("data.not_cached", {{"why", saved.error().what}});
  }
  auto owner = std::make_shared<std::vector<std::uint8_t>>(std::move(*content));
  const std::span<const std::uint8_t> view(*owner);
  return Bytes8{view, std::move(owner)};
}

}  // namespace slipway::train
