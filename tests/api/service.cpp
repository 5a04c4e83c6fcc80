#include "api/service.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <filesystem>
#include <future>

#include "base/sha256.h"
#include "compat/batchai/batchai.h"
#include "compat/mlflow/mlflow.h"

namespace slipway::test {
namespace {

const wire::Value* find(const wire::Value& root, std::string_view path) {
  const wire::Value* at = &root;
  while (at && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, dot);
    path.remove_prefix(std::min(dot + 1, path.size()));
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (at->kind == wire::Value::Kind::list && error == std::errc{})
      at = index < at->items.size() ? &at->items[index] : nullptr;
    else
      at = at->find(part);
  }
  return at;
}

// Collects what a handler answers, in one piece or in many.
class FakeExchange final : public net::Exchange {
 public:
  FakeExchange(net::Request request, std::shared_ptr<std::promise<Answer>> answer)
      : request_(std::move(request)), answer_(std::move(answer)) {}
  ~FakeExchange() override {
    if (!answered_) answer_->set_value({500, {}, "dropped without an answer"});
  }

  const net::Request& request() const override { return request_; }
  void send(net::Response response) override {
    finish({response.status, std::move(response.headers), std::move(response.body)});
  }
  void send_file(int status, net::Headers headers, Fd file, std::uint64_t offset,
                 std::uint64_t length) override {
    std::string body(length, '\0');
    const ssize_t got = ::pread(file.get(), body.data(), length, static_cast<off_t>(offset));
    body.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
    finish({status, std::move(headers), std::move(body)});
  }
  std::shared_ptr<net::Stream> start_stream(int status, net::Headers headers) override {
    struct Collected final : net::Stream {
      explicit Collected(FakeExchange& owner) : exchange(owner) {}
      void write(std::string piece, std::function<void()> written) override {
        exchange.streamed_.body += piece;
        written();
      }
      void finish() override { exchange.finish(std::move(exchange.streamed_)); }
      void on_closed(std::function<void()>) override {}
      FakeExchange& exchange;
    };
    streamed_ = {status, std::move(headers), {}};
    return std::make_shared<Collected>(*this);
  }
  std::shared_ptr<net::WebSocket> accept_websocket(net::WebSocketCallbacks callbacks) override {
    *callbacks_ = std::move(callbacks);
    answered_ = true;
    answer_->set_value({101, {}, {}});
    return std::move(socket_);
  }
  bool wants_websocket() const override { return socket_ != nullptr; }
  void offer(std::shared_ptr<net::WebSocket> socket, net::WebSocketCallbacks& callbacks) {
    socket_ = std::move(socket);
    callbacks_ = &callbacks;
  }
  void on_closed(std::function<void()>) override {}

 private:
  void finish(Answer answer) {
    ASSERT_FALSE(answered_) << request_.target << " is answered twice";
    answered_ = true;
    answer_->set_value(std::move(answer));
  }

  net::Request request_;
  std::shared_ptr<std::promise<Answer>> answer_;
  Answer streamed_;
  bool answered_ = false;
  std::shared_ptr<net::WebSocket> socket_;
  net::WebSocketCallbacks* callbacks_ = nullptr;
};

net::Request request_of(const std::string& method, const std::string& target, const std::string& body) {
  net::Request request;
  request.method = method;
  request.target = target;
  const std::size_t question = std::min(target.find('?'), target.size());
  request.path = target.substr(0, question);
  for (std::size_t at = question; at < target.size();) {
    const std::size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string item = target.substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(item.find('='), item.size());
    request.query.emplace_back(item.substr(0, equals),
                               net::percent_decode(item.substr(std::min(equals + 1, item.size()))).value());
    at = end;
  }
  request.body = body;
  request.body_size = body.size();
  return request;
}

}  // namespace

std::string Answer::at(std::string_view path) const {
  const auto value = wire::parse_json(body, "the answer");
  const wire::Value* found = value ? find(*value, path) : nullptr;
  return found ? found->text : "(none)";
}

std::size_t Answer::size(std::string_view path) const {
  const auto value = wire::parse_json(body, "the answer");
  const wire::Value* found = value ? find(*value, path) : nullptr;
  return found ? found->items.size() : 0;
}

void Service::Effects::carry_out(control::Outputs outputs, const control::Controller&) {
  loop->post([this, outputs = std::make_shared<control::Outputs>(std::move(outputs))] {
    api->carry_out(std::move(*outputs));
  });
}
void Service::Effects::cut_all_sessions(const std::string& why) {
  loop->post([this, why] { api->cut_all_sessions(why); });
}
void Service::Effects::resume_sessions(std::vector<SessionId> sessions) {
  loop->post([this, sessions = std::move(sessions)] { api->resume_sessions(sessions); });
}

Service::Service(const control::InboxLimits& limits, std::vector<std::string> datastore_roots,
                 AuditChoice audit, std::unique_ptr<control::Store> store)
    : store_(store ? std::move(store) : store::make_memory_store()) {
  char folder[] = "/tmp/slipway-api-XXXXXX";
  data_ = ::mkdtemp(folder);
  if (audit.is_kept) audit_ = *api::AuditLog::open(data_ + "/audit.jsonl");
  control::Settings settings;
  settings.machine.total = {8'000, Bytes{16} << 30, 0};
  control_ = std::make_unique<control::Loop>(*store_, settings, clock_, effects_, limits);
  api_ = std::make_unique<api::Api>(loop_, *control_, clock_,
                                    api::ApiOptions{.data = data_,
                                                    .stop = [](bool) {},
                                                    .datastore_roots = std::move(datastore_roots),
                                                    .audit = audit_,
                                                    .audit_reads = audit.with_reads,
                                                    .host_names = {"Slipway.lab"}});
  api_->add_compat_api(
      batchai::make_batchai_api(api_->compat_api_context(), {.machine = settings.machine.total}));
  tracker_ = track::Tracker::open({data_ + "/track"}, track_image_, clock_).value();
  api_->add_compat_api(mlflow::make_mlflow_api(api_->compat_api_context(), *tracker_));
  effects_.loop = &loop_;
  effects_.api = api_.get();
  std::vector<TokenRecord> tokens;
  const auto add = [&](const std::string& name, const std::string& workspace, Role role) {
    tokens.push_back({"token_" + name, name, workspace, role, sha256_hex(name), clock_.now()});
  };
  add("admin", "default", Role::admin);
  add("member", "default", Role::member);
  add("viewer", "default", Role::viewer);
  add("node", "default", Role::node);
  add("ana", "default", Role::member);
  add("other", "other", Role::admin);
  add("other-member", "other", Role::member);
  add("other-viewer", "other", Role::viewer);
  add("other-node", "other", Role::node);
  control::Changes changes;
  changes.tokens = tokens;
  EXPECT_TRUE(store_->save(changes));
  api_->set_tokens(tokens);
  EXPECT_TRUE(control_->start());
  thread_ = std::jthread([this] { loop_.run(); });
}

Service::~Service() {
  control_->stop_in_order(true);
  control_->join();
  loop_.stop();
  thread_.join();
  api_.reset();
  tracker_.reset();
  std::error_code error;
  std::filesystem::remove_all(data_, error);
}

std::future<Answer> Service::begin(const std::string& method, const std::string& target,
                                   const std::string& body, const std::string& token, net::Headers headers,
                                   const std::string& body_file) {
  net::Request request = request_of(method, target, body);
  if (!body_file.empty()) request.body_file = std::make_shared<const net::BodyFile>(body_file);
  request.headers = std::move(headers);
  if (!token.empty()) request.headers.emplace_back("Authorization", "Bearer " + token);
  auto answer = std::make_shared<std::promise<Answer>>();
  auto future = answer->get_future();
  loop_.post([this, exchange = std::make_shared<FakeExchange>(std::move(request), answer)]() mutable {
    api_->handle(std::move(exchange));
  });
  return future;
}

Answer Service::ask(const std::string& method, const std::string& target, const std::string& body,
                    const std::string& token, net::Headers headers, const std::string& body_file) {
  auto future = begin(method, target, body, token, std::move(headers), body_file);
  if (future.wait_for(60s) != std::future_status::ready) return {0, {}, "no answer within 60 s"};
  return future.get();
}

net::BodyPolicy Service::policy(const net::Request& head) {
  std::promise<net::BodyPolicy> decided;
  loop_.post([&] { decided.set_value(api_->policy(head)); });
  return decided.get_future().get();
}

void Service::in_turn(const std::function<void(control::Controller&)>& work) {
  std::promise<void> done;
  control_->change(
      [&](control::Controller& controller) -> std::function<void()> {
        work(controller);
        return [&] { done.set_value(); };
      },
      [&](const Error&) { done.set_value(); });
  done.get_future().wait();
}

net::WebSocketCallbacks Service::open_session(std::shared_ptr<net::WebSocket> socket,
                                              const std::string& token) {
  net::Request request = request_of("GET", "/v1/nodes/connect", {});
  request.headers.emplace_back("Authorization", "Bearer " + token);
  auto answer = std::make_shared<std::promise<Answer>>();
  auto exchange = std::make_shared<FakeExchange>(std::move(request), answer);
  net::WebSocketCallbacks callbacks;
  exchange->offer(std::move(socket), callbacks);
  loop_.post([this, exchange = std::move(exchange)]() mutable { api_->handle(std::move(exchange)); });
  EXPECT_EQ(answer->get_future().get().status, 101);
  return callbacks;
}

void Service::on_network_thread(const std::function<void()>& work) {
  std::promise<void> done;
  loop_.post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

SessionId Service::connect(const std::string& node, const std::string& pool) {
  const SessionId session{++session_last_};
  Hello hello;
  hello.name = node;
  hello.pool = pool;
  hello.instance = "instance-of-" + node;
  hello.boot = "boot";
  hello.address = "127.0.0.1";
  hello.host = "host";
  hello.version = "test";
  hello.shares_storage = true;
  hello.total = {4'000, Bytes{8} << 30, 0};
  in_turn([&](control::Controller& controller) { controller.hello(session, {"node", "default"}, hello); });
  return session;
}

void Service::report(SessionId session, Report report) {
  report.number = ++reports_[session];
  in_turn([&](control::Controller& controller) { controller.report(session, report); });
}

std::string job_body(const std::string& name, const std::string& more) {
  return fmt::format(R"({{{}"name":"{}","tasks":[{{"name":"main","command":["true"]}}]}})", more, name);
}

void check(Service& service, const RouteRow& row) {
  SCOPED_TRACE(row.rule);
  const Answer answer = service.ask(row.method, row.target, row.body, row.token);
  EXPECT_EQ(answer.status, row.status) << answer.body;
  if (row.field) {
    EXPECT_EQ(answer.at(row.field), row.value) << answer.body;
  }
  if (row.status < 400) return;
  EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer.at("status"), std::to_string(row.status));
  EXPECT_NE(answer.at("detail"), "(none)");
}

}  // namespace slipway::test
