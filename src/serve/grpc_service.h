#pragma once
// gRPC calls of TensorFlow Serving and the health service. Tested without a socket.
#include "serve/executor.h"
#include "serve/grpc_server.h"
#include "serve/model_manager.h"

namespace slipway::serve {

class GrpcService {
 public:
  GrpcService(ModelManager& models, Executor& executor, Metrics& metrics, const Clock& clock)
      : models_(models), executor_(executor), metrics_(metrics), clock_(clock) {}

  void handle(const GrpcCall& call, const GrpcReply& reply);

 private:
  void predict(const GrpcCall& call, const GrpcReply& reply);
  void run_examples(Method method, const GrpcCall& call, const GrpcReply& reply);
  Answer<std::string> metadata(std::string_view message) const;
  Answer<std::string> status(std::string_view message) const;

  ModelManager& models_;
  Executor& executor_;
  Metrics& metrics_;
  const Clock& clock_;
};

}  // namespace slipway::serve
