#include "wire/usage.h"

#include "wire/json.h"

namespace slipway::wire {

std::string format(const Usage& usage) {
  static constexpr const char* names[spent_kinds] = {"computing", "staging", "waiting", "lost"};
  Json micros = Json::object(), seconds = Json::object();
  const auto put = [&](const char* name, std::int64_t amount) {
    micros[name] = amount;
    seconds[name] = static_cast<double>(amount) / 1e6;
  };
  for (std::size_t kind = 0; kind < spent_kinds; ++kind) put(names[kind], usage.spent[kind]);
  put("idle", usage.idle);
  put("wall", usage.wall);
  return dump({{"node_seconds", std::move(seconds)}, {"node_microseconds", std::move(micros)}});
}

}  // namespace slipway::wire
