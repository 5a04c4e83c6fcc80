// The web UI: a link that signs the browser in, opened in it.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "cli/client/service.h"
#include "cli/commands/commands.h"
#include "wire/records.h"

extern char** environ;

namespace slipway::cli {
namespace {

// A page that goes on to the link. The browser is given this file, which only its owner reads, because
// everybody on the machine sees the words of a command line.
Outcome<std::string> save_page(const Settings& settings, const std::string& url) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime && *runtime ? runtime : data_folder(settings);
  if (auto made = make_folders(folder, 0700); !made) return give_up(made);
  const std::string path = folder + "/slipway-ui.html";
  const std::string page = fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><title>Slipway</title>"
      "<meta http-equiv=\"refresh\" content=\"0; url={0}\"><a href=\"{0}\">Slipway</a>\n",
      url);
  if (auto written = write_file_durably(path, page, 0600); !written) return give_up(written);
  return path;
}

// Whether a browser was asked to show it; it goes on by itself.
bool open_in_browser(const std::string& path) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return false;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string program = "xdg-open", argument = path;
  char* words[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, program.c_str(), &actions, &attributes, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return failed == 0;
}

Outcome<int> show_ui(Context& context, bool print_only) {
  const Outcome<Value> link = context.service().send("POST", resource({"login", "links"}), "{}");
  if (!link) return give_up(link);
  const std::string url = fmt::format("{}/login#{}", context.service().url(), link->text_at("link_token"));
  if (context.is_json())
    write_out(wire::format_object(
                  {{"url", wire::quote(url)}, {"expires_at", wire::quote(link->text_at("expires_at"))}}) +
              "\n");
  if (context.is_json()) return ExitCode::done;
  if (!print_only) {
    const Outcome<std::string> page = save_page(context.settings(), url);
    if (!page) return give_up(page);
    if (open_in_browser(*page)) {
      context.say("opened in the browser; slipway ui --print prints the link instead");
      return ExitCode::done;
    }
    context.say("there is no browser to open here; this link signs in once, within five minutes:");
  }
  write_out(url + "\n");
  return ExitCode::done;
}

}  // namespace

void add_ui(CommandTree& tree, Context& context) {
  auto print_only = std::make_shared<bool>(false);
  tree.add("ui", "Open the web UI, signed in", "slipway ui --print")
      .flag("--print", *print_only, "print the link instead; it signs in once, within five minutes")
      .runs([&context, print_only] { return show_ui(context, *print_only); });
}

}  // namespace slipway::cli
