#include "cli/client/login.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace slipway::cli {
std::string login_file(const Settings& settings, const std::string& url) {
  std::string name;
  if (const Result<net::Url> parsed = net::parse_url(url))
    name = fmt::format("{}_{}_{}", parsed->is_secure ? "https" : "http", parsed->host, parsed->port);
  for (char& c : name)
    if (c == '/' || c == ':') c = '_';
  return data_folder(settings) + "/logins/" + name;
}

Outcome<void> save_login(const Settings& settings, const std::string& url, const std::string& token) {
  if (auto made = make_folders(data_folder(settings) + "/logins", 0700); !made) return give_up(made);
  if (auto written = write_file_durably(login_file(settings, url), token + "\n", 0600); !written)
    return give_up(written);
  return {};
}

Outcome<bool> remove_login(const Settings& settings, const std::string& url) {
  const std::string file = login_file(settings, url);
  if (::unlink(file.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return give_up(to_failure(system_error("cannot remove " + file, errno)));
}

}  // namespace slipway::cli
