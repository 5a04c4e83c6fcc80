#pragma once
// An exchange whose answer is written into the audit log, and one that only keeps the answer of a read.
#include <functional>
#include <memory>
#include <string>

#include "net/server.h"

namespace slipway::api {

// Passes `done` the status, the headers and, where it is in memory, the body; then lets it continue.
using Answered = std::function<void(int status, const net::Headers& headers, const std::string& body)>;
std::shared_ptr<net::Exchange> make_audited(std::shared_ptr<net::Exchange> exchange, Answered done);

// Answers nobody: `done` is given the body of a 200, or "" for all else, exactly once.
std::shared_ptr<net::Exchange> make_inner(net::Request request, std::function<void(std::string body)> done);

}  // namespace slipway::api
