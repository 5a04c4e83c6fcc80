#pragma once
// What a server proves who it is with. Connections begun before a reload keep what they began with; sessions
// may be resumed after it.
#include <memory>
#include <string>

#include "base/result.h"

namespace slipway::net {

class TlsServer {
 public:
  struct Options {
    std::string certificate_file;  // with its issuers behind it
    std::string key_file;
    std::string client_authority;  // PEM: clients may show certificates it signed; empty: they are not asked
  };
  static Result<std::shared_ptr<TlsServer>> load(Options options);
  ~TlsServer();

  // Reads the files again. An error changes nothing.
  Result<void> reload();

  struct State;  // private to net
  State& state() { return *state_; }

 private:
  explicit TlsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace slipway::net
