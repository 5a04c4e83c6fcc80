#pragma once
// Secrets that the service keeps by name, and how a task asks for one. A job uses those of the user who
// submitted it, and those of its workspace; where both have the name, the user's.
#include <string>
#include <vector>

#include "base/clock.h"

namespace slipway {

struct SecretKey {
  std::string workspace;
  std::string user;  // empty: of the whole workspace
  std::string name;
  friend auto operator<=>(const SecretKey&, const SecretKey&) = default;
};
// What its value is sealed for (base/seal.h): it cannot be opened as another one.
std::string secret_purpose(const SecretKey& key);
std::string describe(const SecretKey& key);  // "secret HF_TOKEN of ana", "secret HF_TOKEN of workspace ml"

struct SecretRecord {
  SecretKey key;
  std::string sealed;
  std::vector<std::string>
      earlier;         // values it had before, sealed, newest first: only to mask them in output
  std::string author;  // who set it last
  TimePoint changed_at{};
  friend bool operator==(const SecretRecord&, const SecretRecord&) = default;
};

struct SecretLimits {
  static constexpr std::size_t value_max = 64 << 10;
  static constexpr std::size_t earlier_max = 8;
  static constexpr std::size_t names_max = 1'000;  // of a user or a workspace
};

// A variable of a task: the value of a secret, or the path of a file that holds it.
struct SecretRef {
  std::string from;  // its name
  bool file = false;
  friend bool operator==(const SecretRef&, const SecretRef&) = default;
};

}  // namespace slipway
