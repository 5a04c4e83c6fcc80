#pragma once
// Where a browser comes back to after a sign-in at a provider: an address of this machine's loopback (RFC
// 8252, 7.3).
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/server.h"

namespace slipway::cli {

class RedirectListener {
 public:
  struct Answer {
    std::string code, state;
    std::string error;  // what the provider says instead of a code
  };
  static Result<std::unique_ptr<RedirectListener>> listen();

  std::string url() const;  // http://127.0.0.1:40001/callback
  // nullopt: nobody came. Answers that do not carry this state are somebody else's and are left aside.
  std::optional<Answer> wait(const std::string& state, Duration patience);

 private:
  RedirectListener() = default;
  void answer(const std::shared_ptr<net::Exchange>& exchange);

  net::Loop loop_;
  std::unique_ptr<net::Server> server_;
  std::string state_;
  std::optional<Answer> answer_;
  std::shared_ptr<net::Loop::Timer> ending_;
};

}  // namespace slipway::cli
