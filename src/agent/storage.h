#pragma once
// What an agent asks of the service over plain HTTP: whether they share storage, and contents it lacks. Both
// block, and give up once `cancel_fd` can be read.
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/client.h"

namespace slipway::agent {

struct Storage {
  bool is_shared = false;
  std::string data;  // the service's data folder, when it is shared
};

// The service names a file of its data folder and what is in it: whoever reads the same there shares the
// storage. An older service that does not say shares none.
Result<Storage> probe_storage(net::Client& client, int cancel_fd);

Result<void> fetch_blob(net::Client& client, const std::string& hash,
                        const std::function<bool(std::string_view)>& take, int cancel_fd);

}  // namespace slipway::agent
