#pragma once
// A list of things that have a form in wire/, all on one page.
#include <string>
#include <vector>

#include "api/router.h"
#include "wire/pool.h"
#include "wire/records.h"
#include "wire/secret.h"

namespace slipway::api {

template <class View>
net::Response list_response(const std::vector<View>& views) {
  std::vector<std::string> items;
  items.reserve(views.size());
  for (const View& view : views) items.push_back(wire::format(view));
  return json(200, wire::format_list(items, std::nullopt));
}

}  // namespace slipway::api
