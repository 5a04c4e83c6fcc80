#pragma once
// Keeps secrets from whoever reads the database, a backup or a log: what is stored is sealed with a key
// that lies in a file of its own.
//
// AES-256-GCM with a random nonce; the text begins with "sealed:" and is base64. Sealing the same text twice
// gives two different ones. What it is for is bound to it: it cannot be opened as anything else. The keys for
// sealing and for signing are derived from a master key, of which there may be several: the last is used,
// those before it open what was sealed with them.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipway {

// Where the keys of a service come from. Those of the file open what was sealed with them; what is given
// beside it is used before it. Each may hold several, of which the last is used.
struct SealingKeys {
  std::string file;         // made where nothing else is given
  std::string given;        // 64 hexadecimal digits or base64 of 32 bytes each, separated by commas
  std::string passphrases;  // one a line: a key is derived from each, by scrypt
  std::string salt_file;    // for that; made when it is not there
};

class Sealer {
 public:
  static Result<Sealer> open(const SealingKeys& keys);
  // Makes the key, readable only by its owner, when the file is not there.
  static Result<Sealer> open(const std::string& key_file);
  // Adds a key to the file, used from the next open() on.
  static Result<void> rotate(const std::string& key_file);
  // With a key that nobody else has and that is forgotten with the object.
  static Sealer for_now();

  // `purpose` says what it is, and is no secret: the name of a variable, the address of a container.
  std::string seal(std::string_view clear, std::string_view purpose) const;
  Result<std::string> unseal(std::string_view sealed, std::string_view purpose) const;
  bool is_current(std::string_view sealed) const;  // sealed with the key that is used now
  // HMAC-SHA-256 in hexadecimal: what only the holder of the key can have written.
  std::string sign(std::string_view text) const;
  bool is_signature(std::string_view signature, std::string_view text) const;

 private:
  using Key = std::array<unsigned char, 32>;
  static Result<std::vector<Key>> given(const std::string& text);
  static Result<std::vector<Key>> derived(const std::string& passphrases, const std::string& salt_file);
  struct Keys {
    Key master;
    Key sealing;
    Key signing;
    std::string id;  // of the master, stored beside what is sealed
  };
  explicit Sealer(const std::vector<Key>& masters);
  static Result<std::vector<Key>> read(const std::string& key_file);
  static Key make();
  static Result<void> write(const std::string& key_file, const std::vector<Key>& masters);
  std::vector<Keys> keys_;  // the one to use last
};

bool is_sealed(std::string_view text);

}  // namespace slipway
