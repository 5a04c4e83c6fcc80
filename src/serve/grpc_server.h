#pragma once
// Unary gRPC over HTTP/2 without TLS, on a thread of its own; nghttp2 does the frames. The only user of
// nghttp2.
//
// What it answers by itself: UNIMPLEMENTED for compressed messages and requests that stream,
// RESOURCE_EXHAUSTED for a message over its limit. Connections and bytes that wait are bounded.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "serve/failure.h"

namespace slipway::serve {

struct GrpcCall {
  std::string method;  // /tensorflow.serving.PredictionService/Predict
  std::string message;
  std::optional<Duration> timeout;  // what the client gives it
};
// Called exactly once, from any thread. Of a call whose client has gone the answer is dropped.
using GrpcReply = std::function<void(Answer<std::string>)>;
using GrpcHandler = std::function<void(GrpcCall, GrpcReply)>;

struct GrpcServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  std::size_t message_max = 64u << 20;
  std::size_t connections_max = 1000;
  std::size_t waiting_bytes_max = 512u << 20;  // of all messages that are not answered yet
};

class GrpcServer {
 public:
  static Result<std::unique_ptr<GrpcServer>> listen(GrpcServerOptions options, GrpcHandler handler);
  virtual ~GrpcServer() = default;  // ends the thread; replies may still come, and are dropped
  virtual std::uint16_t port() const = 0;
};

// grpc-timeout: digits and a unit, as 5S or 200m. nullopt: not written so.
std::optional<Duration> parse_grpc_timeout(std::string_view text);
// As grpc-message wants it: percent-encoded outside of printable ASCII.
std::string encode_grpc_message(std::string_view text);

}  // namespace slipway::serve
