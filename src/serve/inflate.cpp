#include "serve/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <limits>

namespace slipway::serve {

Answer<std::string> inflate_gzip(std::string_view compressed, std::size_t size_max) {
  z_stream stream{};
  constexpr int gzip_or_zlib = 32 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_or_zlib) != Z_OK) return refuse(Code::internal, "zlib has no memory");
  struct End {
    z_stream& of;
    ~End() { inflateEnd(&of); }
  } const end{stream};
  if (compressed.size() > std::numeric_limits<uInt>::max())
    return invalid("the compressed body is too large");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string text;
  std::array<char, 65536> part{};
  for (;;) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    const int state = ::inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END)
      return invalid("the body says Content-Encoding: gzip and cannot be decompressed");
    text.append(part.data(), part.size() - stream.avail_out);
    if (text.size() > size_max)
      return refuse(Code::resource_exhausted, fmt::format("the body has more than {} bytes", size_max));
    if (state == Z_STREAM_END) return text;
    if (stream.avail_in == 0 && stream.avail_out > 0) return invalid("the compressed body is cut off");
  }
}

}  // namespace slipway::serve
