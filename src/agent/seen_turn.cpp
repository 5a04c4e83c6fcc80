#include "agent/seen_turn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/log.h"

namespace slipway::agent {

SeenTurn::SeenTurn(std::string path) : path_(std::move(path)) {
  const Result<std::string> text = read_file(path_);
  char service[65] = {}, proof[65] = {}, run[65] = {};
  unsigned long long turn = 0;
  // What is cut or empty was never whole: then nothing was seen.
  if (text && text->ends_with('\n') &&
      std::sscanf(text->c_str(), "service %64s turn %llu proof %64s run %64s", service, &turn, proof, run) >=
          3)
    saved_ = {service, turn, proof, run};
  file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file_) log::warning("agent.seen", {{"why", system_error("cannot open " + path_, errno).what}});
}

void SeenTurn::note(const ToAgent& message) {
  SavedTurn now = saved_;
  if (const auto* welcome = std::get_if<Welcome>(&message); welcome && welcome->service != saved_.service)
    now = {welcome->service, 0, std::string(32, '0'), {}};
  // A service whose turns are lost sends no orders: what another run says follows what was seen before.
  if (const auto* orders = std::get_if<Orders>(&message); orders && orders->turn > 0)
    if (orders->turn > now.number || orders->turn_run != now.run)
      now = {now.service, orders->turn, orders->turn_proof, orders->turn_run};
  if (now == saved_) return;
  saved_ = std::move(now);
  write();
}

void SeenTurn::write() const {
  if (!file_) return;
  std::string text =
      fmt::format("service {} turn {:020} proof {}", saved_.service, saved_.number, saved_.proof);
  if (!saved_.run.empty()) text += " run " + saved_.run;
  text += '\n';
  if (::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    log::warning("agent.seen", {{"why", system_error("cannot write " + path_, errno).what}});
}

}  // namespace slipway::agent
