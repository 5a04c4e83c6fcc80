#pragma once
// Copies the service's database into a folder every night, while it is used, and keeps the last ones.
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"

namespace slipway {

class Backups {
 public:
  // At three o'clock local time; soon, where the newest is older than a day.
  static Result<std::unique_ptr<Backups>> start(const std::string& database, const std::string& folder,
                                                std::size_t kept);
  ~Backups();

 private:
  struct Night;
  Backups();
  std::unique_ptr<Night> night_;
};

}  // namespace slipway
