// Work in progress: deletions, terminations, and the operations that a 202 names.
#include <fmt/format.h>

#include <set>

#include "base/log.h"
#include "compat/batchai/service.h"

namespace slipway::batchai {
namespace {

constexpr Duration poll_interval = 50ms;
constexpr Duration sweep_interval = 500ms;

// What is marked was marked by somebody who may; it goes for all of them.
control::Caller sweeper(const std::string& workspace) { return {"batchai", workspace, Role::admin}; }

}  // namespace

void Service::remove(const Asked& asked) {
  change(asked, [asked](Registry& registry) -> Answer<Reply> {
    const Target& target = asked.target;
    auto there = registry.remove(target.noun, target.resource);
    if (!there) return refuse(there.error());
    if (!*there) return Reply{204, {}, {}};
    return Reply{200, {}, Operation::Kind::remove};
  });
}

// Polls until it is done; after `accept_after` the caller gets the address to poll instead.
void Service::wait_for(const Asked& asked, const Reply& reply, TimePoint until) {
  const Operation::Kind kind = *reply.work;
  if (options_.always_accepts) return accept(asked, kind);
  if (kind == Operation::Kind::create) return finish(asked, Reply{reply.status, reply.body, {}});
  context_.control.change(
      [this, asked, reply, until, kind](Controller& controller) -> std::function<void()> {
        Registry(controller, sweeper(asked.call.caller.workspace)).sweep();
        const Registry registry(controller, asked.call.caller);
        const bool done = is_done(registry, kind, asked.target.noun, asked.target.resource);
        return [this, asked, reply, until, kind, done] {
          asked.call.loop().post([this, asked, reply, until, kind, done] {
            if (done) return finish(asked, Reply{reply.status, reply.body, {}});
            if (context_.clock.now() >= until) return accept(asked, kind);
            auto timer = std::make_shared<std::shared_ptr<net::Loop::Timer>>();
            *timer = context_.loop.after(poll_interval, [this, asked, reply, until, timer] {
              timer->reset();
              wait_for(asked, reply, until);
            });
          });
        };
      },
      refusal(asked.call));
}

std::string Service::operation_url(const Asked& asked, const std::string& location, const char* word,
                                   const std::string& id) const {
  return fmt::format("{}/subscriptions/{}/providers/Microsoft.BatchAI/locations/{}/{}/{}", asked.base,
                     net::percent_encode(asked.target.resource.subscription), location, word, id);
}

void Service::accept(const Asked& asked, Operation::Kind kind) {
  const Operation operation{new_uuid(), kind, asked.target.noun, asked.target.resource,
                            options_.always_accepts};
  auto location = std::make_shared<std::string>();
  context_.control.change(
      [this, asked, operation, location](Controller& controller) -> std::function<void()> {
        Registry registry(controller, asked.call.caller);
        begin_operation(registry, operation, context_.clock.now());
        *location = registry.location(asked.target.resource);
        return [this, asked, operation, location] {
          asked.call.loop().post([this, asked, operation, location] {
            const std::string version = "?api-version=" + asked.version;
            net::Response response;
            response.status = 202;
            response.headers = {
                {"Azure-AsyncOperation",
                 operation_url(asked, *location, "operationresults", operation.id) + version},
                {"Location", operation_url(asked, *location, "operationstatuses", operation.id) + version},
                {"Retry-After", "15"}};
            if (operation.kind == Operation::Kind::remove) sweep_soon(asked.call.caller.workspace);
            send(asked.call, std::move(response));
          });
        };
      },
      refusal(asked.call));
}

void Service::operation(const Asked& asked) {
  const bool is_result = asked.target.noun == Noun::operation_result;
  const std::string url =
      operation_url(asked, asked.target.location, "operationresults", asked.target.operation);
  change(asked, [this, asked, url, is_result](Registry& registry) -> Answer<Reply> {
    auto value = poll_operation(registry, asked.target.operation, url, context_.clock.now());
    if (!value) return refuse(value.error());
    const bool is_over = text_at(*value, "status") != "InProgress";
    if (!is_result && is_over) return Reply{204, {}, {}};
    return Reply{is_result ? 200 : 202, std::move(*value), {}};
  });
}

// What is marked goes when it can, also when nobody asks.
void Service::sweep_soon(const std::string& workspace) {
  if (sweeps_.contains(workspace)) return;
  sweeps_[workspace] = context_.loop.after(sweep_interval, [this, workspace] {
    context_.control.change(
        [this, workspace](Controller& controller) -> std::function<void()> {
          const bool left = Registry(controller, sweeper(workspace)).sweep();
          return [this, workspace, left] {
            context_.loop.post([this, workspace, left] {
              sweeps_.erase(workspace);
              if (left) sweep_soon(workspace);
            });
          };
        },
        [this, workspace](const Error& error) {
          log::warning("batchai.sweep", {{"workspace", workspace}, {"why", error.what}});
          context_.loop.post([this, workspace] {
            sweeps_.erase(workspace);
            sweep_soon(workspace);
          });
        });
  });
}

void Service::sweep_all() {
  context_.control.change(
      [this](Controller& controller) -> std::function<void()> {
        std::set<std::string> workspaces;
        for (const TokenRecord& token : controller.tokens()) workspaces.insert(token.workspace);
        return [this, workspaces] {
          context_.loop.post([this, workspaces] {
            for (const std::string& workspace : workspaces) sweep_soon(workspace);
          });
        };
      },
      [this](const Error& error) {
        log::warning("batchai.sweep", {{"why", error.what}});
        context_.loop.post(
            [this] { sweep_all_ = context_.loop.after(sweep_interval, [this] { sweep_all(); }); });
      });
}

}  // namespace slipway::batchai
