#pragma once
// A compatibility API: the service under another product's REST paths, resources and error form. Those there
// are lie in src/compat.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/file_source.h"
#include "api/read_pool.h"
#include "api/router.h"
#include "base/seal.h"
#include "control/loop.h"
#include "domain/access.h"
#include "domain/job.h"

namespace slipway::api {

// One kind of request of such an API; parts of the path in braces stand for names.
struct CompatRoute {
  std::string method;
  std::string path;
  Access access;
};

struct CompatBody {
  std::uint64_t size_max = 1u << 20;
  bool is_file = false;  // of any type, and size: it comes as one
};

class CompatApi {
 public:
  virtual ~CompatApi() = default;
  virtual bool answers(std::string_view path) const = 0;
  // What the request asks of the table: decided before its body is read.
  virtual Access access(const net::Request& head) const = 0;
  // The body that the request may have.
  virtual CompatBody body(const net::Request& /*head*/) const { return {}; }
  // Whether its clients may show their token as the password of basic authentication, beside any name.
  virtual bool takes_basic() const { return false; }
  virtual std::vector<CompatRoute> routes() const = 0;  // all there are
  virtual ReservedTags reserved_tags() const = 0;       // under which it files its things
  virtual net::Response unauthorized() const = 0;
  virtual net::Response denied(const Error& why) const = 0;
  // The caller is set where the request is not open to anyone.
  virtual void handle(const Call& call) = 0;
};

// What compatibility APIs are built on. All of it exists as long as the API does.
struct CompatApiContext {
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
