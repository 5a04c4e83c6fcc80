#include "apps/service_tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>

#include "base/file.h"
#include "base/log.h"

namespace slipway {
namespace {

constexpr Duration settle_time = 200ms;  // both files are written before they are read
constexpr Duration renew_every_max = 1h;

// Tests make it short.
Duration lifetime_or(Duration usual) {
  const char* text = std::getenv("SLIPWAY_TEST_CERTIFICATE_SECONDS");
  return text == nullptr ? usual : std::chrono::seconds(std::strtol(text, nullptr, 10));
}
Duration server_lifetime() { return lifetime_or(24h * 90); }
Duration node_lifetime() { return lifetime_or(24h * 7); }

bool covers(const net::CertificateFacts& facts, const std::vector<std::string>& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) {
    return std::find(facts.hosts.begin(), facts.hosts.end(), host) != facts.hosts.end();
  });
}

Result<void> write_pair(const std::string& base, const net::CertifiedKey& pair) {
  return write_file_durably(base + ".key", pair.key, 0600).and_then([&] {
    return write_file_durably(base + ".crt", pair.certificate, 0644);
  });
}

}  // namespace

std::vector<std::string> own_hosts(const std::string& listen) {
  std::set<std::string> hosts{"localhost", "127.0.0.1", "::1"};
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0') hosts.insert(name);
  if (!listen.empty() && listen != "0.0.0.0" && listen != "::") hosts.insert(listen);
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr) continue;
      char text[INET6_ADDRSTRLEN] = {};
      const void* bytes = nullptr;
      if (one->ifa_addr->sa_family == AF_INET)
        bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
      if (one->ifa_addr->sa_family == AF_INET6)
        bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (bytes != nullptr && ::inet_ntop(one->ifa_addr->sa_family, bytes, text, sizeof text) != nullptr)
        hosts.insert(text);
    }
    ::freeifaddrs(interfaces);
  }
  return {hosts.begin(), hosts.end()};
}

std::string ServiceTls::certificate_file() const {
  return is_own() ? options_.folder + "/server.crt" : options_.certificate;
}
std::string ServiceTls::key_file() const { return is_own() ? options_.folder + "/server.key" : options_.key; }

Result<std::unique_ptr<ServiceTls>> ServiceTls::open(Options options, TimePoint now) {
  std::unique_ptr<ServiceTls> tls(new ServiceTls(std::move(options)));
  if (auto taken = tls->take_authority(); !taken) return fail(taken.error());
  if (auto renewed = tls->renew(now); !renewed) return fail(renewed.error());
  auto server = net::TlsServer::load({tls->certificate_file(), tls->key_file(), tls->authority_.certificate});
  if (!server) return fail(server.error());
  tls->server_ = std::move(*server);
  return tls;
}

Result<void> ServiceTls::take_authority() {
  if (auto made = make_folders(options_.folder, 0700); !made) return made;
  const std::string base = options_.folder + "/ca";
  auto certificate = read_file(base + ".crt");
  auto key = read_file(base + ".key");
  if (certificate && key) {
    authority_ = {std::move(*certificate), std::move(*key)};
    return {};
  }
  if (certificate && !key)
    return fail(ErrorCode::conflict, fmt::format("{}.crt is there and its key is not", base),
                "put the key back, or delete the folder: clients then need the new fingerprint");
  auto made = net::make_authority("slipway authority");
  if (!made) return fail(made.error());
  authority_ = std::move(*made);
  return write_pair(base, authority_);
}

Result<void> ServiceTls::renew(TimePoint now) {
  if (!is_own()) return {};
  const auto hosts = own_hosts(options_.listen);
  if (const auto known = read_file(certificate_file()); known && !net::should_renew(*known, now))
    if (const auto facts = net::read_certificate(*known); facts && covers(*facts, hosts)) return {};
  auto issued = net::issue_server(authority_, hosts, server_lifetime());
  if (!issued) return fail(issued.error());
  log::info("tls.issued", {{"file", certificate_file()}});
  return write_pair(options_.folder + "/server", *issued);
}

std::string ServiceTls::fingerprint() const {
  const auto text = read_file(certificate_file());
  const auto facts = text ? net::read_certificate(*text, true) : fail(text.error());
  return facts ? facts->fingerprint : std::string();
}

Result<std::string> ServiceTls::sign_node(const std::string& request, const std::string& name) const {
  return net::sign_client(authority_, request, name, node_lifetime());
}

void ServiceTls::keep_fresh(net::Loop& loop, const Clock& clock, std::function<void()> changed) {
  changed_ = std::move(changed);
  known_fingerprint_ = fingerprint();
  loop_ = &loop;
  clock_ = &clock;
  watcher_ = std::make_unique<net::FileWatcher>(loop);
  watch();
  look_again();
}

// A file that was replaced is another file: it is watched anew.
void ServiceTls::watch() {
  watched_.clear();
  for (const std::string& file : {certificate_file(), key_file()})
    if (auto handle = watcher_->watch(
            file, [this] { reload_timer_ = loop_->after(settle_time, [this] { reload(); }); }))
      watched_.push_back(std::move(handle));
}

void ServiceTls::look_again() {
  renew_timer_ = loop_->after(std::min<Duration>(renew_every_max, server_lifetime() / 6), [this] {
    if (auto renewed = renew(clock_->now()); !renewed)
      log::error("tls.renew", {{"why", renewed.error().what}});
    look_again();
  });
}

void ServiceTls::reload() {
  const auto last = std::move(reload_timer_);
  if (watcher_) watch();
  if (auto reloaded = server_->reload(); !reloaded)
    return log::error("tls.reload",
                      {{"why", reloaded.error().what}, {"instead", "the certificate of before stays"}});
  log::info("tls.reloaded", {{"file", certificate_file()}});
  if (std::string now = fingerprint(); now != known_fingerprint_) {
    known_fingerprint_ = std::move(now);
    changed_();
  }
}

}  // namespace slipway
