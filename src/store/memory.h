#pragma once
// The Store in memory: for the simulation and tests. It keeps exactly what was saved, so that a controller
// loaded from it is one that has been killed and started again. Saves can be made to fail.
#include <memory>

#include "control/store.h"

namespace slipway::store {

class MemoryStore : public control::Store {
 public:
  virtual void fail_saves(bool failing) = 0;
  virtual control::ReadStore& reads() = 0;
};
std::unique_ptr<MemoryStore> make_memory_store();

}  // namespace slipway::store
