#pragma once
// The compatibility API itself: which request is answered how. Included by this folder's .cpp files only.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "compat/batchai/batchai.h"
#include "compat/batchai/body.h"
#include "compat/batchai/operations.h"
#include "compat/batchai/registry.h"
#include "compat/batchai/translate.h"

namespace slipway::batchai {

using control::Controller;

struct Asked {  // a request that was understood
  api::Call call;
  Target target;
  std::string base;  // http://host:port, as the caller reached us
  std::string version;

  const net::Request& request() const { return call.request(); }
};

struct Reply {
  int status = 200;
  std::optional<Value> body;
  // Work that may continue after this answer: it is waited for shortly, and else becomes a 202.
  std::optional<Operation::Kind> work;
};

struct Page {  // of a list, before it is cut
  struct Item {
    std::string key;  // by which it is ordered, and where the next page begins
    std::function<Answer<Value>()> show;
  };
  std::vector<Item> items;
};

class Service final : public api::CompatApi {
 public:
  Service(api::CompatApiContext context, Options options);

  bool answers(std::string_view path) const override;
  Access access(const net::Request& head) const override;
  std::vector<api::CompatRoute> routes() const override;
  ReservedTags reserved_tags() const override { return {tag::prefix, "the Batch AI API"}; }
  net::Response unauthorized() const override;
  net::Response denied(const Error& why) const override;
  void handle(const api::Call& call) override;

 private:
  using Work = std::function<Answer<Reply>(Registry&)>;

  void dispatch(const Asked& asked);
  // (workspaces.cpp)
  void workspaces(const Asked& asked);
  void experiments(const Asked& asked);
  void file_servers(const Asked& asked);
  // (clusters.cpp)
  void clusters(const Asked& asked);
  Answer<Reply> put_cluster(Registry& registry, const Asked& asked, const Value& body,
                            const std::string& uuid);
  // (jobs.cpp)
  void jobs(const Asked& asked);
  Answer<Reply> put_job(Registry& registry, const Asked& asked, const Value& body, const std::string& uuid);
  Answer<Reply> list_jobs(Registry& registry, const Asked& asked, std::uint32_t limit);
  // (outputs.cpp)
  void list_outputs(const Asked& asked);
  void download(const api::Call& call);
  struct OutputSource {  // an output folder, opened
    std::shared_ptr<api::FileSource> source;
    std::string path;  // in the source
  };
  struct OutputLocation {  // where an output folder lies; it is opened on the network's thread
    std::string folder;
    std::string node;  // not empty: on that node
    std::string path;
  };
  Answer<OutputLocation> find_outputs(Registry& registry, const JobRecord& job,
                                      const std::string& directory) const;
  OutputSource open(const control::Caller& caller, const OutputLocation& location) const;
  // (waiting.cpp)
  void remove(const Asked& asked);
  void operation(const Asked& asked);
  void wait_for(const Asked& asked, const Reply& reply, TimePoint until);
  void accept(const Asked& asked, Operation::Kind kind);
  void sweep_soon(const std::string& workspace);
  void sweep_all();

  // On a read thread: `work` and its rendering never keep the control thread or the network's waiting.
  void read(const Asked& asked, Work work);
  void with_saved(const control::Caller& caller, std::function<void(Registry&)> work,
                  std::function<void(const Error&)> failed);
  std::function<void(const Error&)> refusal(const api::Call& call);
  void change(const Asked& asked, Work work);
  void finish(const Asked& asked, const Answer<Reply>& answer);
  static net::Response render(const Answer<Reply>& answer);
  void send(const api::Call& call, net::Response response) const;
  // Cuts a list to what was asked for.
  Answer<Reply> list(const Asked& asked, Page page) const;
  std::string next_link(const Asked& asked, const std::string& token) const;
  std::string operation_url(const Asked& asked, const std::string& location, const char* word,
                            const std::string& id) const;
  // The folders that requests of the old shape need, made when they are not there.
  static void make_default(Registry& registry, const Asked& asked);

  api::CompatApiContext context_;
  Options options_;
  std::map<std::string, std::shared_ptr<net::Loop::Timer>> sweeps_;  // by workspace
  std::shared_ptr<net::Loop::Timer> sweep_all_;
};

Answer<std::uint32_t> number_of(const Asked& asked, const char* name, std::uint32_t low, std::uint32_t high,
                                std::uint32_t otherwise);
std::string new_uuid();
CloudError is_being_deleted(Noun noun, std::string_view name);
CloudError method_unknown(const Asked& asked);

}  // namespace slipway::batchai
