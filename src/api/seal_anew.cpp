#include "api/seal_anew.h"

#include "base/log.h"

namespace slipway::api {

Result<void> seal_anew(control::Store& store, const Sealer& sealer) {
  std::size_t done = 0, left = 0;
  const auto seal = [&](const std::string& sealed, const std::string& purpose) {
    if (sealed.empty() || sealer.is_current(sealed)) return sealed;
    auto clear = sealer.unseal(sealed, purpose);
    ++(clear ? done : left);
    return clear ? sealer.seal(*clear, purpose) : sealed;
  };
  auto loaded = store.load();
  if (!loaded) return fail(loaded.error());
  control::Changes changes;
  for (SecretRecord& secret : loaded->secrets) {
    const std::string purpose = secret_purpose(secret.key);
    secret.sealed = seal(secret.sealed, purpose);
    for (std::string& earlier : secret.earlier) earlier = seal(earlier, purpose);
    changes.secrets.push_back(std::move(secret));
  }
  for (DatastoreRecord& datastore : loaded->datastores) {
    datastore.key = seal(datastore.key, datastore.url);
    changes.datastores.push_back(std::move(datastore));
  }
  for (PoolRecord& pool : loaded->pools) {
    for (auto& [variable, value] : pool.start_task.secrets) value = seal(value, variable);
    changes.pools.push_back(std::move(pool));
  }
  if (!changes.empty())
    if (auto saved = store.save(changes); !saved) return saved;
  if (auto sealed = store.seal_specs_anew(seal); !sealed) return sealed;
  log::info("secrets.sealed_anew", {{"values", done}, {"not_opened", left}});
  return {};
}

}  // namespace slipway::api
