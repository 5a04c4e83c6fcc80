#pragma once
// A face: the same service in the words of another one. It answers its own paths, in its own error form, with
// what is here; src/compat has them.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/file_source.h"
#include "api/read_pool.h"
#include "api/router.h"
#include "base/seal.h"
#include "control/loop.h"

namespace slipway::api {

class Face {
 public:
  virtual ~Face() = default;
  virtual bool answers(std::string_view path) const = 0;
  virtual bool is_open(std::string_view path) const = 0;  // no token is needed there
  virtual net::Response unauthorized() const = 0;
  // Caller and role are set where the path is not open. A join token (Role::node) comes here, too.
  virtual void handle(const Call& call) = 0;
};

// What the API lends its faces. All of it lives as long as the API does.
struct FaceTools {
  net::Loop& loop;
  control::Loop& control;
  ReadPool& reads;
  const Clock& clock;
  std::string data;      // the data folder, absolute
  const Sealer& sealer;  // for secrets that are stored, and for links
  std::function<std::shared_ptr<FileSource>(const std::string& folder)> files_here;
  std::function<std::shared_ptr<FileSource>(const std::string& workspace, const std::string& node,
                                            const std::string& folder)>
      files_on_node;
  // The file or the part of it that the request's Range asks for.
  std::function<void(const Call&, const std::shared_ptr<FileSource>&, const std::string& path)> send_file;
};

}  // namespace slipway::api
