#include "api/oidc_sign_ins.h"

#include <algorithm>
#include <memory>

#include "base/random.h"
#include "net/client.h"

namespace slipway::api {
namespace {

constexpr std::size_t pending_max = 1'000, asking_max = 32;
constexpr Duration pending_for = std::chrono::minutes(10);

bool is_loopback(const std::string& url) {
  const auto parsed = net::parse_web_url(url);
  return parsed && !parsed->is_secure &&
         (parsed->host == "127.0.0.1" || parsed->host == "::1" || parsed->host == "localhost");
}

}  // namespace

template <class T>
void OidcSignIns::ask(std::function<Result<T>(oidc::Provider&)> work, std::function<void(Result<T>)> done) {
  const Error busy{ErrorCode::unavailable, "too many sign in at once", "try again in a second"};
  if (asking_ >= asking_max) return done(fail(busy));
  ++asking_;
  const bool posted = worker_.post([this, work, done] {
    const auto answer = std::make_shared<Result<T>>(work(provider_));
    loop_.post([this, answer, done] {
      --asking_;
      done(std::move(*answer));
    });
  });
  if (posted) return;
  --asking_;
  done(fail(busy));
}

std::string OidcSignIns::keep(Pending pending) {
  const TimePoint now = clock_.now();
  std::erase_if(pending_, [&](const auto& entry) { return entry.second.until <= now; });
  if (pending_.size() >= pending_max)
    pending_.erase(std::min_element(pending_.begin(), pending_.end(), [](const auto& a, const auto& b) {
      return a.second.until < b.second.until;
    }));
  const std::string id = random_hex(16);
  pending_[id] = std::move(pending);
  return id;
}

void OidcSignIns::begin(const std::string& redirect_url, const std::string& challenge,
                        std::function<void(Result<Begun>)> done) {
  if (!is_loopback(redirect_url))
    return done(fail(ErrorCode::invalid, "redirect_uri is not an http address of this machine's loopback",
                     "use one like http://127.0.0.1:40001/callback"));
  const std::string nonce = random_hex(16), state = random_hex(16);
  const oidc::CodeRequest request{redirect_url, state, nonce, challenge};
  ask<std::string>([request](oidc::Provider& provider) { return provider.authorization_url(request); },
                   [this, request, done](Result<std::string> url) {
                     if (!url) return done(fail(url.error()));
                     const TimePoint until = clock_.now() + pending_for;
                     const std::string id = keep({until, request.redirect_url, request.nonce});
                     done(Begun{id, *url, request.state, {}, {}, until});
                   });
}

void OidcSignIns::begin_device(std::function<void(Result<Begun>)> done) {
  ask<oidc::DeviceCode>([](oidc::Provider& provider) { return provider.start_device(); },
                        [this, done](Result<oidc::DeviceCode> device) {
                          if (!device) return done(fail(device.error()));
                          const TimePoint until = clock_.now() + std::min(device->expires_in, pending_for);
                          const std::string id = keep({.until = until, .device_code = device->device_code});
                          done(Begun{id, device->url, {}, device->user_code, device->interval, until});
                        });
}

void OidcSignIns::finish(const std::string& id, const std::string& code, const std::string& verifier,
                         std::function<void(Result<std::optional<oidc::Identity>>)> done) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || found->second.until <= clock_.now() || found->second.is_asking)
    return done(fail(ErrorCode::not_found, "there is no such sign-in under way", "begin another one"));
  Pending& pending = found->second;
  if (pending.device_code.empty()) {
    const oidc::Code exchange{code, pending.redirect_url, verifier, pending.nonce};
    pending_.erase(found);  // a code is tried once
    return ask<std::optional<oidc::Identity>>(
        [exchange](oidc::Provider& provider) {
          return provider.exchange(exchange).map([](oidc::Identity who) { return std::optional(who); });
        },
        done);
  }
  pending.is_asking = true;
  ask<std::optional<oidc::Identity>>(
      [device = pending.device_code](oidc::Provider& provider) { return provider.poll_device(device); },
      [this, id, done](Result<std::optional<oidc::Identity>> answer) {
        if (answer && !*answer) {
          if (const auto still = pending_.find(id); still != pending_.end()) still->second.is_asking = false;
        } else {
          pending_.erase(id);
        }
        done(std::move(answer));
      });
}

}  // namespace slipway::api
