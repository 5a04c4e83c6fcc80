#pragma once
// An agent's connection to its service: dialled until it works, and again when it is lost. It also finds out
// whether the two share storage, and renews the certificate that the node shows.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/storage.h"
#include "agent/worker.h"
#include "base/clock.h"
#include "base/random.h"
#include "domain/ids.h"
#include "domain/protocol.h"
#include "net/client.h"
#include "net/loop.h"

namespace slipway::agent {

class ServiceLink {
 public:
  struct Options {
    std::string name;       // of the node
    std::string folder;     // of the node
    std::string data;       // the service's data folder, where it is known to be the same one
    std::string workspace;  // empty: that of the token
    net::Headers headers;   // of every request
    int cancel_fd = -1;     // readable: what the worker waits for is not wanted any more
  };
  struct Callbacks {
    std::function<void(Storage)> storage;  // found, before the first session
    std::function<void(SessionId)> opened;
    std::function<void(SessionId, ToAgent)> message;
    std::function<void(const std::string&)> binary;
    std::function<void(SessionId)> lost;                  // the link has begun to dial again
    std::function<void(const std::string& why)> refused;  // for good
  };
  ServiceLink(net::Loop& loop, Worker& worker, const Clock& clock, net::Url url, Options options,
              Callbacks callbacks);

  void open();
  // Dropped when the session is over.
  void send(SessionId session, std::string text);
  void send_binary(std::string message);
  // The service has taken this node in: a refusal is no longer for good.
  void welcomed();
  // Ends the session and dials again, without waiting for the other side, which may be beyond reach: nothing
  // more comes of this session, and `lost` is not called.
  void hang_up(const std::string& why);

  SessionId session() const { return session_; }
  std::string authority() const { return url_.authority(); }
  net::Client client() const { return net::Client(url_, options_.headers); }

 private:
  void dial();
  void redial(const std::string& why);
  void find_storage();
  void follow_service();
  void take_certificate(std::function<void()> then);
  void keep_certificate();
  void on_opened(SessionId session, Result<std::shared_ptr<net::WebSocket>> socket);
  void on_refused(const Error& error);
  void on_text(SessionId session, const std::string& text);
  void on_joined();
  void lose(SessionId session, const std::string& why);

  net::Loop& loop_;
  Worker& worker_;
  const Clock& clock_;
  net::Url url_;
  const Options options_;
  Callbacks callbacks_;
  Random random_;

  bool has_storage_;
  SessionId session_;
  std::shared_ptr<net::WebSocket> socket_;
  Duration redial_wait_{0};
  std::string last_problem_;
  bool was_welcome_ = false;
  bool is_joined_ = false;  // and that is in the log
  bool has_asked_ = false;  // for a certificate, before this dial
  std::shared_ptr<net::Loop::Timer> certificate_timer_;
  std::shared_ptr<net::Loop::Timer> redial_timer_;
};

}  // namespace slipway::agent
