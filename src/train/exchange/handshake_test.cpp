#include "train/exchange/handshake.h"

#include <gtest/gtest.h>

namespace slipway::train {
namespace {

using Encryption = GangKey::Encryption;

const std::string nonce_of_a(nonce_bytes, 'a'), nonce_of_b(nonce_bytes, 'b');
const std::string key = "a key of some length";

struct Outcome {
  bool agreed = false, encrypted = false;
};

// The whole exchange of messages; `change` may alter the challenge and the answer on their way.
Outcome meet(const GangKey& connecting, const GangKey& accepting, bool same_host,
             const std::function<void(HandshakeMessage&)>& change = {}) {
  ConnectingHandshake a(connecting, same_host, nonce_of_a);
  AcceptingHandshake b(accepting, same_host, nonce_of_b);
  HandshakeMessage challenge = a.challenge();
  if (change) change(challenge);
  auto answer = b.take(challenge.frame, challenge.payload);
  EXPECT_FALSE(b.is_done());
  if (!answer || !*answer) return {};
  if (change) change(**answer);
  auto proof = a.take((*answer)->frame, (*answer)->payload, "the peer");
  if (!proof) {
    EXPECT_EQ(proof.error().code, ErrorCode::denied);
    return {};
  }
  const auto done = b.take(proof->frame, proof->payload);
  if (!done) return {};
  EXPECT_TRUE(b.is_done());
  EXPECT_FALSE(*done) << "nothing is left to say";
  const auto keys = a.keys(), others = b.keys();
  EXPECT_EQ(keys.has_value(), others.has_value());
  if (keys && others) {
    EXPECT_EQ(keys->sending, others->receiving);
    EXPECT_EQ(keys->receiving, others->sending);
    EXPECT_NE(keys->sending, keys->receiving);
    EXPECT_EQ(keys->sending.size(), 32U);
  }
  return {true, keys.has_value()};
}

TEST(Handshake, EncryptsWhereEitherSideWantsIt) {
  struct Row {
    const char* rule;
    Encryption connecting, accepting;
    bool same_host, encrypted;
  };
  const Row rows[] = {
      {"between hosts", Encryption::between_hosts, Encryption::between_hosts, false, true},
      {"not on one host", Encryption::between_hosts, Encryption::between_hosts, true, false},
      {"not on a network that both trust", Encryption::never, Encryption::never, false, false},
      {"one that trusts the network gives way", Encryption::never, Encryption::between_hosts, false, true},
      {"on either side", Encryption::between_hosts, Encryption::never, false, true},
      {"always", Encryption::always, Encryption::always, true, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const Outcome outcome = meet({key, row.connecting}, {key, row.accepting}, row.same_host);
    EXPECT_TRUE(outcome.agreed);
    EXPECT_EQ(outcome.encrypted, row.encrypted);
  }
}

TEST(Handshake, RefusesAnotherKey) {
  EXPECT_FALSE(meet({key}, {"another key, as long"}, true).agreed);
  EXPECT_FALSE(meet({key}, {key + " "}, true).agreed);
  // Nor does the accepting side take the proof of another key, whatever its peer made of the answer.
  AcceptingHandshake b({key}, true, nonce_of_b);
  ConnectingHandshake a({"another key, as long"}, true, nonce_of_a);
  AcceptingHandshake false_b({"another key, as long"}, true, nonce_of_b);
  const HandshakeMessage challenge = a.challenge();
  ASSERT_TRUE(b.take(challenge.frame, challenge.payload));
  const auto answer = false_b.take(challenge.frame, challenge.payload);
  const auto proof = a.take((*answer)->frame, (*answer)->payload, "the peer");
  ASSERT_TRUE(proof);
  const auto refused = b.take(proof->frame, proof->payload);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "its gang key (SLIPWAY_GANG_KEY) is another than that of this run");
  EXPECT_FALSE(refused.error().hint.empty());
  EXPECT_FALSE(b.is_done());
  EXPECT_FALSE(b.keys());
}

TEST(Handshake, FindsOutWhoChangesTheMessages) {
  const GangKey wanted{key, Encryption::between_hosts};
  const auto without_flag = [](HandshakeMessage& message) { message.frame.flags = 0; };
  EXPECT_FALSE(meet(wanted, {key, Encryption::never}, false, without_flag).agreed) << "no downgrade";
  EXPECT_FALSE(meet(wanted, wanted, false, without_flag).agreed);
  const auto with_flag = [](HandshakeMessage& message) { message.frame.flags = flag_encrypt; };
  EXPECT_FALSE(meet({key, Encryption::never}, {key, Encryption::never}, true, [&](HandshakeMessage& message) {
                 if (message.frame.kind == FrameKind::answer) with_flag(message);
               }).agreed);
  for (std::size_t at = 0; at < nonce_bytes + proof_bytes; ++at)
    EXPECT_FALSE(meet(wanted, wanted, false,
                      [&](HandshakeMessage& message) {
                        if (at < message.payload.size()) message.payload[at] ^= 1;
                      })
                     .agreed)
        << at;
}

TEST(Handshake, TakesNothingElseBeforeTheProof) {
  for (const FrameKind kind : {FrameKind::hello, FrameKind::push, FrameKind::proof, FrameKind::answer}) {
    AcceptingHandshake b({key}, true, nonce_of_b);
    const auto refused = b.take({.kind = kind, .bytes = nonce_bytes}, nonce_of_a);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "it has no gang key (SLIPWAY_GANG_KEY) and this run has one");
  }
  AcceptingHandshake b({key}, true, nonce_of_b);
  const HandshakeMessage challenge = ConnectingHandshake({key}, true, nonce_of_a).challenge();
  ASSERT_TRUE(b.take(challenge.frame, challenge.payload));
  EXPECT_FALSE(b.take(challenge.frame, challenge.payload)) << "no second one";
  EXPECT_TRUE(AcceptingHandshake({}, true, nonce_of_b).is_done())
      << "without a key there is nothing to prove";
}

}  // namespace
}  // namespace slipway::train
