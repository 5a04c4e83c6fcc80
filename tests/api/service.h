#pragma once
// The API over a real control loop and, usually, the memory store, without sockets: a test hands in a request
// as a value and gets the answer as one.
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "api/api.h"
#include "store/memory.h"
#include "track/memory_image.h"
#include "track/tracker.h"
#include "wire/document.h"

namespace slipway::test {

struct Answer {
  int status = 0;
  net::Headers headers;
  std::string body;

  std::string header(std::string_view name) const { return net::find_header(headers, name).value_or(""); }
  // A field of a JSON body by its path, `items.0.name`, as text; "(none)" where there is none.
  std::string at(std::string_view path) const;
  std::size_t size(std::string_view path) const;  // of a list, or 0
};

struct AuditChoice {
  bool is_kept = false;
  bool with_reads = false;
};

class Service {
 public:
  explicit Service(const control::InboxLimits& limits = {}, std::vector<std::string> datastore_roots = {},
                   AuditChoice audit = {}, std::unique_ptr<control::Store> store = nullptr);
  ~Service();

  // A query follows the path: ask("GET", "/v1/jobs?limit=2", ...).
  Answer ask(const std::string& method, const std::string& target, const std::string& body = {},
             const std::string& token = "admin", net::Headers headers = {},
             const std::string& body_file = {});
  // What is decided from the head of a request, before its body.
  net::BodyPolicy policy(const net::Request& head);
  std::future<Answer> begin(const std::string& method, const std::string& target,
                            const std::string& body = {}, const std::string& token = "admin",
                            net::Headers headers = {}, const std::string& body_file = {});
  Answer get(const std::string& target, const std::string& token = "admin") {
    return ask("GET", target, {}, token);
  }
  // A connection as a node's agent makes it, without a socket. `socket` sees what is done to it.
  net::WebSocketCallbacks open_session(std::shared_ptr<net::WebSocket> socket, const std::string& token);
  void on_network_thread(const std::function<void()>& work);  // and waits until it is done
  // A node that says hello and takes orders, but runs nothing.
  SessionId connect(const std::string& node, const std::string& pool);
  void report(SessionId session, Report report);
  void in_turn(const std::function<void(control::Controller&)>& work);  // and waits until it is saved

  const std::string& data() const { return data_; }
  store::MemoryStore& store() { return dynamic_cast<store::MemoryStore&>(*store_); }  // where none was given
  control::Loop& control() { return *control_; }
  api::Api& api() { return *api_; }
  api::AuditLog& audit() { return *audit_; }
  track::Tracker& tracker() { return *tracker_; }

 private:
  struct Effects final : control::OutputHandler {
    net::Loop* loop = nullptr;
    api::Api* api = nullptr;
    void carry_out(control::Outputs outputs, const control::Controller&) override;
    void cut_all_sessions(const std::string& why) override;
    void resume_sessions(std::vector<SessionId> sessions) override;
  };

  SystemClock clock_;
  std::string data_;
  std::unique_ptr<control::Store> store_;
  net::Loop loop_;
  Effects effects_;
  std::unique_ptr<control::Loop> control_;
  std::shared_ptr<api::AuditLog> audit_;
  track::MemoryImage track_image_;
  std::unique_ptr<track::Tracker> tracker_;
  std::unique_ptr<api::Api> api_;
  std::uint64_t session_last_ = 1'000'000;
  std::map<SessionId, std::uint64_t> reports_;
  std::jthread thread_;
};

// A job of one task that runs `true`; `more` is put in front of its other fields.
std::string job_body(const std::string& name, const std::string& more = {});

// A request and what it answers; `field` is looked for in a JSON body.
struct RouteRow {
  const char* rule;
  const char* method;
  const char* target;
  const char* body;
  const char* token;
  int status;
  const char* field = nullptr;
  const char* value = nullptr;
};
// The status, the field, and that a refusal is problem+json with a detail.
void check(Service& service, const RouteRow& row);

}  // namespace slipway::test
