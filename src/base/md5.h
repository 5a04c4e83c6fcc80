#pragma once
// MD5, for stores that name content by it (Content-MD5). It finds accidents, not attackers: never a proof.
#include <memory>
#include <string>
#include <string_view>

namespace slipway {

class Md5 {  // add() in pieces, then finish() once
 public:
  Md5();
  ~Md5();
  Md5(Md5&&) noexcept;
  Md5& operator=(Md5&&) noexcept;
  void add(std::string_view bytes);
  std::string finish();  // 16 bytes

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace slipway
