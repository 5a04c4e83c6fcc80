#include "base/seal.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/encoding.h"
#include "base/file.h"
#include "base/hmac.h"

namespace slipway {
namespace {

constexpr std::string_view mark = "sealed:";
constexpr std::size_t nonce_size = 12;
constexpr std::size_t tag_size = 16;

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
Context make_context() { return {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free}; }

unsigned char* bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Error not_ours() {
  return {ErrorCode::internal, "a sealed secret cannot be opened: it was sealed with another key",
          "put back the file secret.key that belongs to this data folder, or submit the secret again"};
}

}  // namespace

bool is_sealed(std::string_view text) { return text.starts_with(mark); }

Sealer Sealer::for_now() {
  Key key;
  SLIPWAY_CHECK(RAND_bytes(key.data(), static_cast<int>(key.size())) == 1);
  return Sealer(key);
}

Result<Sealer> Sealer::open(const std::string& key_file) {
  Key key;
  struct stat status {};
  if (::stat(key_file.c_str(), &status) != 0) {
    SLIPWAY_CHECK(RAND_bytes(key.data(), static_cast<int>(key.size())) == 1);
    const std::string text(reinterpret_cast<const char*>(key.data()), key.size());
    if (auto written = write_file_durably(key_file, text, 0600); !written) return fail(written.error());
    return Sealer(key);
  }
  const Result<std::string> text = read_file(key_file);
  if (!text) return fail(text.error());
  if (text->size() != key.size())
    return fail(
        ErrorCode::internal, "the file " + key_file + " is not a key: it should have 32 bytes",
        "put back the one that belongs to this data folder; secrets sealed with it are lost otherwise");
  std::copy(text->begin(), text->end(), reinterpret_cast<char*>(key.data()));
  return Sealer(key);
}

std::string Sealer::seal(std::string_view clear) const {
  std::string raw(nonce_size + clear.size() + tag_size, '\0');
  unsigned char* at = bytes(raw);
  SLIPWAY_CHECK(RAND_bytes(at, nonce_size) == 1);
  const Context context = make_context();
  int size = 0;
  SLIPWAY_CHECK(EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), at) == 1);
  SLIPWAY_CHECK(EVP_EncryptUpdate(context.get(), at + nonce_size, &size, bytes(clear),
                                  static_cast<int>(clear.size())) == 1);
  SLIPWAY_CHECK(EVP_EncryptFinal_ex(context.get(), at + nonce_size + size, &size) == 1);
  SLIPWAY_CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, tag_size,
                                    at + nonce_size + clear.size()) == 1);
  return std::string(mark) + format_base64(raw);
}

Result<std::string> Sealer::unseal(std::string_view sealed) const {
  if (!is_sealed(sealed)) return fail(not_ours());
  std::optional<std::string> raw = parse_base64(sealed.substr(mark.size()));
  if (!raw || raw->size() < nonce_size + tag_size) return fail(not_ours());
  const std::size_t length = raw->size() - nonce_size - tag_size;
  std::string clear(length, '\0');
  unsigned char* at = bytes(*raw);
  const Context context = make_context();
  int size = 0;
  SLIPWAY_CHECK(EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), at) == 1);
  SLIPWAY_CHECK(
      EVP_DecryptUpdate(context.get(), bytes(clear), &size, at + nonce_size, static_cast<int>(length)) == 1);
  SLIPWAY_CHECK(
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, tag_size, at + nonce_size + length) == 1);
  unsigned char nothing[tag_size];
  if (EVP_DecryptFinal_ex(context.get(), nothing, &size) != 1) return fail(not_ours());
  return clear;
}

std::string Sealer::sign(std::string_view text) const {
  // Never the text alone: what is signed for one purpose must not pass for another.
  const std::string named = "slipway signature:" + std::string(text);
  const std::string_view key(reinterpret_cast<const char*>(key_.data()), key_.size());
  return format_hex(hmac_sha256(key, named));
}

}  // namespace slipway
