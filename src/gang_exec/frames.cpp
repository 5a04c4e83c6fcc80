#include "gang_exec/frames.h"

#include <fmt/format.h>

#include "base/encoding.h"
#include "base/hmac.h"

namespace slipway::gang_exec {
namespace {

constexpr std::size_t header_size = 5;
constexpr std::size_t words_max = 65536;

void append_number(std::string& text, std::size_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>((number >> shift) & 0xff));
}

std::size_t read_number(std::string_view text) {
  std::size_t number = 0;
  for (const char c : text.substr(0, 4)) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

void append_word(std::string& text, std::string_view word) {
  append_number(text, word.size());
  text += word;
}

class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}
  std::optional<std::size_t> number() {
    if (rest_.size() < 4) return std::nullopt;
    const std::size_t value = read_number(rest_);
    rest_.remove_prefix(4);
    return value;
  }
  std::optional<std::string> word() {
    const auto size = number();
    if (!size || *size > rest_.size()) return std::nullopt;
    std::string value(rest_.substr(0, *size));
    rest_.remove_prefix(*size);
    // The system ends words at a NUL: what was checked and what runs would differ.
    if (value.find('\0') != std::string::npos) return std::nullopt;
    return value;
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

std::string format_frame(FrameKind kind, std::string_view payload) {
  std::string text;
  text.reserve(header_size + payload.size());
  text.push_back(static_cast<char>(kind));
  append_number(text, payload.size());
  text += payload;
  return text;
}

Result<std::optional<Frame>> FrameReader::next() {
  if (buffer_.size() < header_size) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(buffer_[0]);
  if (kind < static_cast<std::uint8_t>(FrameKind::hello) ||
      kind > static_cast<std::uint8_t>(FrameKind::refused))
    return fail(ErrorCode::invalid, fmt::format("a frame of unknown kind {}", kind));
  const std::size_t size = read_number(std::string_view(buffer_).substr(1));
  if (size > payload_max_)
    return fail(ErrorCode::too_large,
                fmt::format("a frame of {} bytes where {} are allowed", size, payload_max_));
  if (buffer_.size() < header_size + size) return std::nullopt;
  Frame frame{static_cast<FrameKind>(kind), buffer_.substr(header_size, size)};
  buffer_.erase(0, header_size + size);
  return frame;
}

std::string format_request(const StartRequest& request) {
  std::string text;
  append_number(text, request.argv.size());
  for (const std::string& word : request.argv) append_word(text, word);
  append_number(text, request.variables.size());
  for (const auto& [name, value] : request.variables) {
    append_word(text, name);
    append_word(text, value);
  }
  return text;
}

Result<StartRequest> parse_request(std::string_view payload) {
  const auto broken = [] { return fail(ErrorCode::invalid, "the request is broken"); };
  WordReader reader(payload);
  StartRequest request;
  const auto words = reader.number();
  if (!words || *words == 0 || *words > words_max) return broken();
  for (std::size_t i = 0; i < *words; ++i) {
    auto word = reader.word();
    if (!word) return broken();
    request.argv.push_back(std::move(*word));
  }
  const auto variables = reader.number();
  if (!variables || *variables > words_max) return broken();
  for (std::size_t i = 0; i < *variables; ++i) {
    auto name = reader.word();
    auto value = reader.word();
    if (!name || !value || name->empty() || name->find('=') != std::string::npos) return broken();
    request.variables.insert_or_assign(std::move(*name), std::move(*value));
  }
  if (!reader.is_at_end() || request.argv.front().empty()) return broken();
  return request;
}

std::string format_end(const ExitStatus& end) {
  return {end.signalled ? 's' : 'e', static_cast<char>(end.number & 0xff)};
}

Result<ExitStatus> parse_end(std::string_view payload) {
  if (payload.size() != 2 || (payload[0] != 's' && payload[0] != 'e'))
    return fail(ErrorCode::invalid, "the end of the command is broken");
  return ExitStatus{payload[0] == 's', static_cast<unsigned char>(payload[1])};
}

std::string mac(std::string_view secret, std::string_view message) {
  return format_hex(hmac_sha256(secret, message));
}

std::string server_proof(std::string_view secret, const Nonces& nonces) {
  return mac(secret, fmt::format("server {} {}", nonces.client, nonces.server));
}

std::string client_key(std::string_view secret, const Nonces& nonces) {
  return hmac_sha256(secret, fmt::format("client key {} {}", nonces.client, nonces.server));
}

std::string server_key(std::string_view secret, const Nonces& nonces) {
  return hmac_sha256(secret, fmt::format("server key {} {}", nonces.client, nonces.server));
}

std::string client_proof(std::string_view secret, const Nonces& nonces, std::string_view request_digest) {
  return mac(secret, fmt::format("client {} {} {}", nonces.client, nonces.server, request_digest));
}

}  // namespace slipway::gang_exec
