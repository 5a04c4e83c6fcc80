#pragma once
// Errors as Azure's APIs answer them.
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace slipway::batchai {

struct CloudError {
  int status = 400;
  std::string code;
  std::string message;
  std::string target;  // the field it is about
  struct Detail {
    std::string code;
    std::string message;
    std::string target;
  };
  std::vector<Detail> details;
};

template <class T>
using Answer = tl::expected<T, CloudError>;
inline tl::unexpected<CloudError> refuse(CloudError error) {
  return tl::unexpected<CloudError>(std::move(error));
}
inline tl::unexpected<CloudError> refuse(int status, std::string code, std::string message,
                                         std::string target = {}) {
  return tl::unexpected<CloudError>(
      CloudError{status, std::move(code), std::move(message), std::move(target), {}});
}

// Of the core. What is temporary becomes 409 and 429: the SDK retries 5xx for minutes, without a word to its
// caller.
CloudError to_cloud_error(const Error& error);
net::Response response_of(const CloudError& error);

}  // namespace slipway::batchai
