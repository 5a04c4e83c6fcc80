#pragma once
// Runs commands on this node for its siblings: `slipway node serve-starts`.
#include <cstdint>
#include <list>
#include <memory>

#include "base/file.h"
#include "base/result.h"
#include "gang_exec/gang.h"
#include "gang_exec/start_session.h"

namespace slipway::gang_exec {

class StartServer {
 public:
  // On the own node's entry. `variables`: what every command starts with.
  static Result<std::unique_ptr<StartServer>> listen(Gang gang, Environment variables,
                                                     ServeOptions options = {});

  std::uint16_t port() const;
  // Until `stop` can be read; then ends what runs and gives back.
  void serve(int stop);

 private:
  StartServer(Gang gang, Environment variables, ServeOptions options, Fd listener);
  void accept();
  void wait(int stop);
  void drop_oldest_unauthenticated();

  const Gang gang_;
  const Environment variables_;
  const ServeOptions options_;
  Fd listener_;
  bool stopping_ = false;
  bool out_of_descriptors_ = false;
  std::list<StartSession> sessions_;  // in the order they came
};

// The verb: serves until SIGTERM. Its exit code.
int serve_starts();

}  // namespace slipway::gang_exec
