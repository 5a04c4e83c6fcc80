#pragma once
// Links by which an output file can be read without a token, for a while: path, expiry, signature.
//
// /batchai/download/<expiry>/<signature>/<workspace>/<job>/<directory>/<path…>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/seal.h"
#include "compat/batchai/cloud_error.h"
#include "domain/ids.h"

namespace slipway::batchai {

struct Link {
  std::string workspace;  // of Slipway: whose job it is
  JobId job;
  std::string directory;  // stdouterr, or the id of an output directory
  std::string path;       // in it
  friend bool operator==(const Link&, const Link&) = default;
};

bool is_link(std::string_view path);
std::string sign_link(const Link& link, TimePoint expiry, const Sealer& sealer);  // a path
// 404 for what is no link, 403 for one that was changed or is too old.
Answer<Link> open_link(std::string_view path, TimePoint now, const Sealer& sealer);

}  // namespace slipway::batchai
