#pragma once
// Every REST surface of the model server: TensorFlow Serving, Open Inference Protocol v2, MLflow scoring,
// Cloud ML bodies, Prometheus. Parse, run, format; tested without a socket.
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"
#include "serve/executor.h"
#include "serve/model_config.h"
#include "serve/model_manager.h"
#include "serve/oip.h"

namespace slipway::serve {

struct RestOptions {
  Monitoring monitoring{};
  Duration timeout = 30s;
  bool allows_other_origins = false;  // answers CORS headers
  std::size_t body_max = 64u << 20;
};

class Rest {
 public:
  // Called exactly once for each request, perhaps from another thread.
  using Reply = std::function<void(net::Response)>;

  Rest(ModelManager& models, Executor& executor, Metrics& metrics, const Clock& clock, RestOptions options)
      : models_(models),
        executor_(executor),
        metrics_(metrics),
        clock_(clock),
        options_(std::move(options)) {}

  void handle(const net::Request& request, Reply reply);

 private:
  void route(const net::Request& request, const std::string& body, const Reply& reply);
  bool route_tensorflow(const net::Request& request, const std::string& body, const Reply& reply);
  bool route_inference(const net::Request& request, const std::string& body, const Reply& reply);
  bool route_scoring(const net::Request& request, const std::string& body, const Reply& reply);
  bool route_cloud_ml(const net::Request& request, const std::string& body, const Reply& reply);

  void predict(const std::string& model, const VersionChoice& choice, const std::string& body,
               const Reply& reply);
  void run_examples(const std::string& model, const VersionChoice& choice, Method method,
                    const std::string& body, const Reply& reply);
  void infer(const std::string& model, const VersionChoice& choice, const net::Request& request,
             const std::string& body, const Reply& reply);
  void score(const std::string& model, const net::Request& request, const std::string& body,
             const Reply& reply);
  net::Response repository_index() const;

  using Format = std::function<Answer<net::Response>(const Tensors&)>;
  void execute(std::string model, ServedModel served, std::string signature, const char* api, Tensors inputs,
               TimePoint begun, Format format, const Reply& reply);
  net::Response failed(const std::string& model, const Failure& failure) const;

  ModelManager& models_;
  Executor& executor_;
  Metrics& metrics_;
  const Clock& clock_;
  RestOptions options_;
};

net::Response json_response(int status, std::string body);
net::Response failure_response(const Failure& failure);

}  // namespace slipway::serve
