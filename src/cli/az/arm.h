#pragma once
// Batch AI's REST API as its commands use it: paths, paging, operations that take a while, and where a
// resource is when the command line does not say. Included in .cpp files only.
#include <string>
#include <utility>
#include <vector>

#include "cli/az/defaults.h"
#include "cli/commands/context.h"
#include "wire/value.h"

namespace slipway::cli::az {

// What every Azure-compatible command takes.
struct Common {
  std::string group;
  std::string subscription;
  std::string query;
  bool debug = false;
  bool verbose = false;
};
Command& add_common(Command& command, Common& common);
// The workspace, and the experiment in it, that a command works on.
struct Scope : Common {
  std::string workspace;
  std::string experiment;
  std::string location;
};
Command& add_workspace(Command& command, Scope& scope);
Command& add_experiment(Command& command, Scope& scope);  // and the workspace

enum class Waiting { until_done, not_at_all };

class Arm {
 public:
  static Outcome<Arm> open(Context& context, const Common& common);

  Context& context() { return *context_; }
  Defaults& defaults() { return defaults_; }

  // The value given, else the configured one, else `otherwise`.
  std::string pick(const std::string& given, const char* name, const std::string& otherwise) const;
  std::string subscription() const;
  std::string group() const;
  // -l, the configured one, that of the group, or `local`.
  std::string location(const std::string& given) const;
  // The storage account: given, from the environment, configured; empty when there is none.
  std::string known_account(const std::string& given) const;
  std::string account(const std::string& given) const;  // `default` when there is none

  // /subscriptions/…/workspaces/{ws}, and below it.
  std::string workspaces() const;  // of the group
  std::string workspace(const Scope& scope) const;
  std::string cluster(const Scope& scope, const std::string& name) const;
  std::string file_server(const Scope& scope, const std::string& name) const;
  std::string experiment(const Scope& scope) const;
  std::string job(const Scope& scope, const std::string& name) const;
  // Makes the workspace, and the experiment where `with_experiment`, when they are not there.
  enum class Depth { workspace, experiment };
  Outcome<void> ensure(const Scope& scope, Depth depth);

  Outcome<Value> get(const std::string& path);
  // Null when it does not exist.
  Outcome<Value> find(const std::string& path);
  // The failure of `show`: what is missing exits 3, as az does.
  Outcome<Value> show(const std::string& path);
  Outcome<Value> put(const std::string& path, const Value& body, Waiting waiting = Waiting::until_done);
  Outcome<Value> patch(const std::string& path, const Value& body);
  Outcome<Value> remove(const std::string& path, Waiting waiting);
  Outcome<Value> post(const std::string& path, Waiting waiting);
  // Every page. `query` is added to the first.
  Outcome<Value> list(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& query = {},
                      const char* method = "GET");
  // For everything else, API version and all.
  Outcome<net::Response> send(const char* method, const std::string& target, const std::string& body = {});

 private:
  Arm(Context& context, const Common& common, Defaults defaults)
      : context_(&context), common_(&common), defaults_(std::move(defaults)) {}
  Outcome<void> wait_for(const net::Response& accepted, const std::string& path);
  Outcome<void> poll_operation(const std::string& target);
  Outcome<void> make_when_absent(const std::string& path, const Value& body, const std::string& name_given,
                                 const std::string& described);

  Context* context_;
  const Common* common_;
  Defaults defaults_;
};

// The part of an absolute URL that our service is asked for.
std::string target_of(const std::string& url);
Outcome<Value> parse_answer(const net::Response& response, const std::string& target);
// The segment after `kind` of a resource id, kinds compared without case: resourcegroups, workspaces,
// clusters …
std::string part_of_id(const std::string& id, std::string_view kind);
// The value at a path of keys; null when absent.
const Value& value_at(const Value& json, std::initializer_list<const char*> keys);
// The text under a path of keys; empty when there is none.
std::string text_at(const Value& json, std::initializer_list<const char*> keys);

}  // namespace slipway::cli::az
