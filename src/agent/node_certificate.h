#pragma once
// The certificate a node shows where the service has TLS: asked for with the node's key, kept in its folder,
// asked for again in time.
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "net/client.h"

namespace slipway::agent {

// Sets what the connection shows.
void show_certificate(net::Url& url, const std::string& folder);
// Whether there is none, or one that should be renewed.
bool needs_certificate(const std::string& folder, TimePoint now);
// How long until it is worth asking again.
Duration certificate_check_wait(const std::string& folder);
// Asks for one and keeps it. ErrorCode::unavailable: it can be tried again; others: this service, or this
// key, gets none.
Result<void> fetch_certificate(const net::Url& url, const net::Headers& headers, const std::string& folder,
                               int cancel_fd);

}  // namespace slipway::agent
