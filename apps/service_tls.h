#pragma once
// The certificates of the service: its own authority, made at the first start; the server's certificate, from
// that authority or the user's files; those of the nodes.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/certificates.h"
#include "net/loop.h"
#include "net/tail.h"
#include "net/tls_server.h"

namespace slipway {

// The names and addresses of this machine, and the one that is listened to.
std::vector<std::string> own_hosts(const std::string& listen);

class ServiceTls {
 public:
  struct Options {
    std::string folder;            // of the authority and what it signed; made where it is missing
    std::string certificate, key;  // files of the user's own; empty: the authority's
    std::string listen;            // an address the server is reached by
  };
  static Result<std::unique_ptr<ServiceTls>> open(Options options, TimePoint now);

  const std::shared_ptr<net::TlsServer>& server() const { return server_; }
  // Of what clients pin: the last certificate that the server shows.
  std::string fingerprint() const;
  // For the node's agent.
  Result<std::string> sign_node(const std::string& request, const std::string& name) const;

  // Keeps the certificate good, and takes files that were replaced, until this is destroyed. `changed` is
  // called when there is another fingerprint: with a certificate of one's own that has no issuer behind it.
  void keep_fresh(net::Loop& loop, const Clock& clock, std::function<void()> changed);
  void reload();

 private:
  explicit ServiceTls(Options options) : options_(std::move(options)) {}
  Result<void> take_authority();
  Result<void> renew(TimePoint now);  // where it is due
  bool is_own() const { return options_.certificate.empty(); }
  std::string certificate_file() const;
  std::string key_file() const;
  void watch();
  void look_again();

  Options options_;
  net::CertifiedKey authority_;
  std::shared_ptr<net::TlsServer> server_;
  net::Loop* loop_ = nullptr;
  const Clock* clock_ = nullptr;
  std::function<void()> changed_;
  std::string known_fingerprint_;
  std::unique_ptr<net::FileWatcher> watcher_;
  std::vector<std::shared_ptr<net::FileWatcher::Handle>> watched_;
  std::shared_ptr<net::Loop::Timer> reload_timer_, renew_timer_;
};

}  // namespace slipway
