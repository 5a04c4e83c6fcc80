#pragma once
// The address of a container, taken apart. Pure.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/client.h"

namespace slipway::blob {

struct ContainerAddress {
  net::Url url;                                          // of the store; its path is empty
  std::string account;                                   // lab
  std::string path;                                      // /data, or /devstoreaccount1/data
  std::vector<std::pair<std::string, std::string>> sas;  // decoded; empty when there is none
  std::string name() const { return url.origin() + path; }
};

// An account stands in the host's name (lab.blob.core.windows.net/data) or first in the path
// (127.0.0.1:10000/devstoreaccount1/data). Messages never repeat the query, which is a secret.
Result<ContainerAddress> parse_container_address(std::string_view text);

}  // namespace slipway::blob
