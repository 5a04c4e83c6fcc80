#include "apps/detach.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "base/log.h"

namespace slipway {

static int serve_alone(const std::string& log_file, const Serve& serve, int ready) {
  ::setsid();
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  return serve([&](const std::string& url) {
    ::dup2(log >= 0 ? log : null, STDERR_FILENO);
    ::close(errors);
    if (::write(ready, url.data(), url.size()) < 0)
      log::warning("service.announce", {{"why", "the caller is gone"}});
    ::close(ready);
  });
}

Result<std::string> serve_detached(const std::string& log_file, const Serve& serve) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe", errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("cannot start the service", errno));
  if (child == 0) {
    ::close(ready[0]);
    ::_exit(serve_alone(log_file, serve, ready[1]));
  }
  ::close(ready[1]);
  const Fd answer(ready[0]);
  std::string url;
  char buffer[256];
  for (ssize_t got; (got = ::read(answer.get(), buffer, sizeof buffer)) > 0;)
    url.append(buffer, static_cast<std::size_t>(got));
  return url;
}

}  // namespace slipway
