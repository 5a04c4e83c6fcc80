#pragma once
// By what an agent joins. A join token lets in as many machines as it says and is gone then; each machine
// makes a key for its node, which is known from its first welcome on and lets in that node alone. So another
// holder of a join token cannot take the place of a node, whatever it knows of it.
#include "base/result.h"
#include "control/turn.h"
#include "domain/protocol.h"

namespace slipway::control {

// `node` is the one of that name, if there is one. A refusal is final.
Result<void> may_join(const State& state, const Caller& caller, const Credential& credential,
                      const Node* node, const Hello& hello);
// With the welcome: the node's key is known from now on, and a join token is used.
void keep_key(Turn& turn, const Node& node, SessionId session, const Credential& credential);
void forget_key(Turn& turn, const NodeRecord& node);

}  // namespace slipway::control
