#include "compat/batchai/cloud_error.h"

#include "compat/batchai/tree.h"

namespace slipway::batchai {

CloudError to_cloud_error(const Error& error) {
  CloudError answer;
  answer.message = error.hint.empty() ? error.what : error.what + "; " + error.hint;
  switch (error.code) {
    case ErrorCode::invalid:
    case ErrorCode::too_large: answer.status = 400, answer.code = "InvalidRequestBody"; break;
    case ErrorCode::not_found: answer.status = 404, answer.code = "ResourceNotFound"; break;
    case ErrorCode::conflict: answer.status = 409, answer.code = "OperationNotAllowed"; break;
    case ErrorCode::denied: answer.status = 403, answer.code = "AuthorizationFailed"; break;
    case ErrorCode::unavailable: answer.status = 429, answer.code = "TooManyRequests"; break;
    case ErrorCode::internal: answer.status = 500, answer.code = "InternalError"; break;
  }
  return answer;
}

net::Response response_of(const CloudError& error) {
  Value shown = object_value({{"code", text_value(error.code)}, {"message", text_value(error.message)}});
  if (!error.target.empty()) set(shown, "target", text_value(error.target));
  if (!error.details.empty()) {
    Value details = list_value();
    for (const CloudError::Detail& detail : error.details) {
      Value& item = details.items.emplace_back(
          object_value({{"code", text_value(detail.code)}, {"message", text_value(detail.message)}}));
      if (!detail.target.empty()) set(item, "target", text_value(detail.target));
    }
    set(shown, "details", std::move(details));
  }
  net::Response response;
  response.status = error.status;
  response.body = format(object_value({{"error", std::move(shown)}}));
  if (error.status == 429) response.headers.emplace_back("Retry-After", "1");
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace slipway::batchai
