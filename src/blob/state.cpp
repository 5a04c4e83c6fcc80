#include "blob/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "blob/names.h"
#include "net/http.h"

namespace slipway::blob {
namespace {

constexpr std::string_view first_line = "slipway-sync 1";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && stop == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string format_state(const SyncState& state) {
  std::string text =
      fmt::format("{}\n{} {}\n", first_line, net::percent_encode(state.container), state.folder);
  for (const KnownFile& file : state.files)
    text += fmt::format("{} {} {} {} {}\n", encode_path(file.here.name), file.here.size,
                        file.here.modified_ns, net::percent_encode(file.etag), file.md5);
  return text;
}

Result<SyncState> parse_state(std::string_view text) {
  std::size_t number = 0;
  const auto broken = [&](std::string_view why) {
    return fail(ErrorCode::invalid, fmt::format("line {} is broken: {}", number, why));
  };
  SyncState state;
  if (!text.ends_with('\n')) return broken("the text ends too early");
  for (const std::string_view line : split(text.substr(0, text.size() - 1), '\n')) {
    const auto words = split(line, ' ');
    if (++number == 1) {
      if (line != first_line) return broken("it is of another version");
    } else if (number == 2) {
      const auto container = net::percent_decode(words.front());
      if (words.size() != 2 || !container || !read_number(words[1], state.folder))
        return broken("not a header");
      state.container = *container;
    } else {
      KnownFile file;
      const auto name = net::percent_decode(words.front());
      if (words.size() != 5 || !name || !read_number(words[1], file.here.size) ||
          !read_number(words[2], file.here.modified_ns))
        return broken("not a file");
      const auto etag = net::percent_decode(words[3]);
      if (!etag || trouble_with_name(*name)) return broken("not the name of a file");
      file.here.name = *name;
      file.etag = *etag;
      file.md5 = words[4];
      state.files.push_back(std::move(file));
    }
  }
  if (number < 2) return broken("the text ends too early");
  return state;
}

}  // namespace slipway::blob
