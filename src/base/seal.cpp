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

std::string_view key_text(const std::array<unsigned char, 32>& key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

std::string signed_text(std::string_view text) { return "slipway signature:" + std::string(text); }

Error not_ours() {
  return {ErrorCode::internal, "a sealed secret cannot be opened: it was sealed with another key",
          "give the key or passphrase that it was sealed with, or set the secret again"};
}

}  // namespace

bool is_sealed(std::string_view text) { return text.starts_with(mark); }

Sealer::Sealer(const std::vector<Key>& masters) {
  const auto derived = [](const Key& master, std::string_view purpose) {
    const std::string text = hmac_sha256(key_text(master), purpose);
    Key key;
    SLIPWAY_CHECK(text.size() == key.size());
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(key.data()));
    return key;
  };
  for (const Key& master : masters)
    keys_.push_back({master, derived(master, "slipway: sealing"), derived(master, "slipway: signing"),
                     format_hex(hmac_sha256(key_text(master), "slipway: id")).substr(0, 8)});
}

Sealer::Key Sealer::make() {
  Key key;
  SLIPWAY_CHECK(RAND_bytes(key.data(), static_cast<int>(key.size())) == 1);
  return key;
}

Sealer Sealer::for_now() { return Sealer({make()}); }

Result<std::vector<Sealer::Key>> Sealer::read(const std::string& key_file) {
  const Result<std::string> text = read_file(key_file);
  if (!text) return fail(text.error());
  constexpr std::size_t size = std::tuple_size_v<Key>;
  if (text->empty() || text->size() % size != 0)
    return fail(
        ErrorCode::internal, "the file " + key_file + " is not a key: it should have 32 bytes for each",
        "put back the one that belongs to this data folder; secrets sealed with it are lost otherwise");
  std::vector<Key> masters(text->size() / size);
  for (std::size_t i = 0; i < masters.size(); ++i)
    std::copy_n(text->data() + i * size, size, reinterpret_cast<char*>(masters[i].data()));
  return masters;
}

Result<void> Sealer::write(const std::string& key_file, const std::vector<Key>& masters) {
  std::string text;
  for (const Key& master : masters) text += key_text(master);
  return write_file_durably(key_file, text, 0600);
}

Result<Sealer> Sealer::open(const std::string& key_file) {
  struct stat status {};
  if (::stat(key_file.c_str(), &status) != 0) {
    const std::vector<Key> made{make()};
    if (auto written = write(key_file, made); !written) return fail(written.error());
    return Sealer(made);
  }
  auto masters = read(key_file);
  if (!masters) return fail(masters.error());
  return Sealer(*masters);
}

Result<void> Sealer::rotate(const std::string& key_file) {
  auto masters = read(key_file);
  if (!masters) return fail(masters.error());
  masters->push_back(make());
  return write(key_file, *masters);
}

// ── keys from elsewhere ──

Result<std::vector<Sealer::Key>> Sealer::given(const std::string& text) {
  std::vector<Key> keys;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(",\n", begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    if (one.empty()) continue;
    const std::optional<std::string> bytes = one.size() == 64 ? parse_hex(one) : parse_base64(one);
    Key key;
    if (!bytes || bytes->size() != key.size())
      return fail(ErrorCode::invalid,
                  "a key for secrets is neither 64 hexadecimal digits nor base64 of 32 bytes",
                  "make one: openssl rand -base64 32");
    std::copy(bytes->begin(), bytes->end(), reinterpret_cast<char*>(key.data()));
    keys.push_back(key);
  }
  return keys;
}

Result<std::vector<Sealer::Key>> Sealer::derived(const std::string& passphrases,
                                                 const std::string& salt_file) {
  constexpr std::size_t salt_size = 16, passphrase_min = 12;
  constexpr std::uint64_t cost = 1 << 15, block_size = 8, parallel = 1, memory_max = 64u << 20;
  std::vector<Key> keys;
  std::string salt;
  for (std::size_t begin = 0; begin < passphrases.size();) {
    const std::size_t end = std::min(passphrases.find('\n', begin), passphrases.size());
    const std::string one = passphrases.substr(begin, end - begin);
    begin = end + 1;
    if (one.empty()) continue;
    if (one.size() < passphrase_min)
      return fail(ErrorCode::invalid, "the passphrase for secrets has less than 12 characters",
                  "choose a longer one");
    if (salt.empty()) {
      if (auto known = read_file(salt_file); known && known->size() == salt_size) {
        salt = *known;
      } else if (known || known.error().code != ErrorCode::not_found) {
        return fail(ErrorCode::internal, "the file " + salt_file + " is not a salt of 16 bytes",
                    "put back the one that belongs to this data folder");
      } else {
        salt.resize(salt_size);
        SLIPWAY_CHECK(RAND_bytes(bytes(salt), salt_size) == 1);
        if (auto written = write_file_durably(salt_file, salt, 0600); !written) return fail(written.error());
      }
    }
    Key& key = keys.emplace_back();
    SLIPWAY_CHECK(EVP_PBE_scrypt(one.data(), one.size(), bytes(std::string_view(salt)), salt.size(), cost,
                                 block_size, parallel, memory_max, key.data(), key.size()) == 1);
  }
  return keys;
}

Result<Sealer> Sealer::open(const SealingKeys& sources) {
  auto masters = given(sources.given);
  if (!masters) return fail(masters.error());
  auto from_passphrases = derived(sources.passphrases, sources.salt_file);
  if (!from_passphrases) return fail(from_passphrases.error());
  masters->insert(masters->end(), from_passphrases->begin(), from_passphrases->end());
  if (masters->empty()) return open(sources.file);
  struct stat status {};
  if (::stat(sources.file.c_str(), &status) == 0) {
    auto of_file = read(sources.file);
    if (!of_file) return fail(of_file.error());
    masters->insert(masters->begin(), of_file->begin(), of_file->end());
  }
  return Sealer(*masters);
}

bool Sealer::is_current(std::string_view sealed) const {
  return sealed.starts_with(std::string(mark) + keys_.back().id + ":");
}

std::string Sealer::seal(std::string_view clear, std::string_view purpose) const {
  std::string raw(nonce_size + clear.size() + tag_size, '\0');
  unsigned char* at = bytes(raw);
  SLIPWAY_CHECK(RAND_bytes(at, nonce_size) == 1);
  const Keys& keys = keys_.back();
  const Context context = make_context();
  int size = 0;
  SLIPWAY_CHECK(EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, keys.sealing.data(), at) == 1);
  if (!purpose.empty())
    SLIPWAY_CHECK(EVP_EncryptUpdate(context.get(), nullptr, &size, bytes(purpose),
                                    static_cast<int>(purpose.size())) == 1);
  SLIPWAY_CHECK(EVP_EncryptUpdate(context.get(), at + nonce_size, &size, bytes(clear),
                                  static_cast<int>(clear.size())) == 1);
  SLIPWAY_CHECK(EVP_EncryptFinal_ex(context.get(), at + nonce_size + size, &size) == 1);
  SLIPWAY_CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, tag_size,
                                    at + nonce_size + clear.size()) == 1);
  return std::string(mark) + keys.id + std::string(":") + format_base64(raw);
}

namespace {

std::optional<std::string> opened(const unsigned char* key, std::string raw, std::string_view purpose) {
  const std::size_t length = raw.size() - nonce_size - tag_size;
  std::string clear(length, '\0');
  unsigned char* at = bytes(raw);
  const Context context = make_context();
  int size = 0;
  SLIPWAY_CHECK(EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key, at) == 1);
  if (!purpose.empty())
    SLIPWAY_CHECK(EVP_DecryptUpdate(context.get(), nullptr, &size, bytes(purpose),
                                    static_cast<int>(purpose.size())) == 1);
  SLIPWAY_CHECK(
      EVP_DecryptUpdate(context.get(), bytes(clear), &size, at + nonce_size, static_cast<int>(length)) == 1);
  SLIPWAY_CHECK(
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, tag_size, at + nonce_size + length) == 1);
  unsigned char nothing[tag_size];
  if (EVP_DecryptFinal_ex(context.get(), nothing, &size) != 1) return std::nullopt;
  return clear;
}

}  // namespace

Result<std::string> Sealer::unseal(std::string_view sealed, std::string_view purpose) const {
  if (!is_sealed(sealed)) return fail(not_ours());
  sealed.remove_prefix(mark.size());
  const std::size_t colon = sealed.find(':');
  const std::string_view id = colon == std::string_view::npos ? std::string_view() : sealed.substr(0, colon);
  const std::optional<std::string> raw =
      parse_base64(colon == std::string_view::npos ? sealed : sealed.substr(colon + 1));
  if (!raw || raw->size() < nonce_size + tag_size) return fail(not_ours());
  for (const Keys& keys : keys_) {
    if (!id.empty() && id != keys.id) continue;
    // Without an id: sealed before keys were derived, with the master and for no purpose.
    const auto clear =
        id.empty() ? opened(keys.master.data(), *raw, {}) : opened(keys.sealing.data(), *raw, purpose);
    if (clear) return *clear;
  }
  return fail(not_ours());
}

std::string Sealer::sign(std::string_view text) const {
  // Never the text alone: what is signed for one purpose must not pass for another.
  return format_hex(hmac_sha256(key_text(keys_.back().signing), signed_text(text)));
}

bool Sealer::is_signature(std::string_view signature, std::string_view text) const {
  bool is_one = false;
  for (const Keys& keys : keys_)
    for (const Key& key : {keys.signing, keys.master})  // the master: before keys were derived
      is_one |=
          is_equal_in_constant_time(signature, format_hex(hmac_sha256(key_text(key), signed_text(text))));
  return is_one;
}

}  // namespace slipway
