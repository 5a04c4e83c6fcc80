#pragma once
// What this face answers when it cannot do what it was asked: Azure's error form.
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace slipway::batchai {

struct Fault {
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
using Answer = tl::expected<T, Fault>;
inline tl::unexpected<Fault> refuse(Fault fault) { return tl::unexpected<Fault>(std::move(fault)); }
inline tl::unexpected<Fault> refuse(int status, std::string code, std::string message,
                                    std::string target = {}) {
  return tl::unexpected<Fault>(Fault{status, std::move(code), std::move(message), std::move(target), {}});
}

// Of the core. What is only for the moment becomes 409 and 429: the SDK tries 5xx again for minutes, and its
// caller sees nothing but silence.
Fault fault_of(const Error& error);
net::Response response_of(const Fault& fault);

}  // namespace slipway::batchai
