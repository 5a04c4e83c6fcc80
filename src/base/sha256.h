#pragma once
// SHA-256, as lower-case hexadecimal: the name of stored content, and what is kept of a token.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace slipway {

class Sha256 {  // add() in pieces, then finish() once
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void add(std::string_view bytes);
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
std::string sha256_bytes(std::string_view bytes);  // the 32 bytes themselves
bool is_sha256_hex(std::string_view text);

}  // namespace slipway
