#include "compat/batchai/fault.h"

#include "compat/batchai/tree.h"

namespace slipway::batchai {

Fault fault_of(const Error& error) {
  Fault fault;
  fault.message = error.hint.empty() ? error.what : error.what + "; " + error.hint;
  switch (error.code) {
    case ErrorCode::invalid:
    case ErrorCode::too_large: fault.status = 400, fault.code = "InvalidRequestBody"; break;
    case ErrorCode::not_found: fault.status = 404, fault.code = "ResourceNotFound"; break;
    case ErrorCode::conflict: fault.status = 409, fault.code = "OperationNotAllowed"; break;
    case ErrorCode::denied: fault.status = 403, fault.code = "AuthorizationFailed"; break;
    case ErrorCode::unavailable: fault.status = 429, fault.code = "TooManyRequests"; break;
    case ErrorCode::internal: fault.status = 500, fault.code = "InternalError"; break;
  }
  return fault;
}

net::Response response_of(const Fault& fault) {
  Value error = object_value({{"code", text_value(fault.code)}, {"message", text_value(fault.message)}});
  if (!fault.target.empty()) set(error, "target", text_value(fault.target));
  if (!fault.details.empty()) {
    Value details = list_value();
    for (const Fault::Detail& detail : fault.details) {
      Value& item = details.items.emplace_back(
          object_value({{"code", text_value(detail.code)}, {"message", text_value(detail.message)}}));
      if (!detail.target.empty()) set(item, "target", text_value(detail.target));
    }
    set(error, "details", std::move(details));
  }
  net::Response response;
  response.status = fault.status;
  response.body = format(object_value({{"error", std::move(error)}}));
  if (fault.status == 429) response.headers.emplace_back("Retry-After", "1");
  if (fault.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace slipway::batchai
