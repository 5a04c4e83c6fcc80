#include "keeper/socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace slipway::keeper {
namespace {

struct SocketAddress {
  Fd folder;
  sockaddr_un address{};
};

Result<SocketAddress> find_socket(const std::string& folder) {
  SocketAddress found;
  found.folder = Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!found.folder) return fail(system_error("cannot open " + folder, errno));
  found.address.sun_family = AF_UNIX;
  const std::string name = fmt::format("/proc/self/fd/{}/{}", found.folder.get(), keeper_socket_name);
  std::memcpy(found.address.sun_path, name.c_str(), name.size() + 1);
  return found;
}

Fd make_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

}  // namespace

Result<Fd> listen_keeper(const std::string& folder) {
  const Result<SocketAddress> found = find_socket(folder);
  if (!found) return fail(found.error());
  Fd socket = make_socket();
  if (!socket) return fail(system_error("cannot make a unix socket", errno));
  // The lock says that nobody listens on an old one.
  if (::unlinkat(found->folder.get(), keeper_socket_name, 0) != 0 && errno != ENOENT)
    return fail(system_error(fmt::format("cannot remove {}/{}", folder, keeper_socket_name), errno));
  const mode_t before = ::umask(0177);
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&found->address), sizeof found->address);
  const int error = errno;
  ::umask(before);
  if (bound != 0)
    return fail(system_error(fmt::format("cannot make {}/{}", folder, keeper_socket_name), error));
  if (::listen(socket.get(), 4) != 0)
    return fail(system_error(fmt::format("cannot listen on {}/{}", folder, keeper_socket_name), errno));
  return socket;
}

Result<Fd> connect_keeper(const std::string& folder) {
  const Result<SocketAddress> found = find_socket(folder);
  if (!found) return fail(found.error());
  Fd socket = make_socket();
  if (!socket) return fail(system_error("cannot make a unix socket", errno));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&found->address), sizeof found->address) == 0)
    return socket;
  Error error = system_error(fmt::format("cannot reach the keeper of {}", folder), errno);
  error.code = ErrorCode::unavailable;
  return fail(std::move(error));
}

}  // namespace slipway::keeper
