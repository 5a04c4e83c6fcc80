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
  char service[65] = {}, proof[65] = {};
  unsigned long long turn = 0;
  // What is cut or empty was never whole: then nothing was seen.
  if (text && text->ends_with('\n') &&
      std::sscanf(text->c_str(), "service %64s turn %llu proof %64s", service, &turn, proof) == 3)
    saved_ = {service, turn, proof};
  file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file_) log::warning("agent.seen", {{"why", system_error("cannot open " + path_, errno).what}});
}

void SeenTurn::note(const ToAgent& message) {
  SavedTurn now = saved_;
  if (const auto* welcome = std::get_if<Welcome>(&message); welcome && welcome->service != saved_.service)
    now = {welcome->service, 0, std::string(32, '0')};
  if (const auto* orders = std::get_if<Orders>(&message))
    if (orders->turn > now.number) now = {now.service, orders->turn, orders->turn_proof};
  if (now == saved_) return;
  saved_ = std::move(now);
  write();
}

void SeenTurn::write() const {
  if (!file_) return;
  const std::string text =
      fmt::format("service {} turn {:020} proof {}\n", saved_.service, saved_.number, saved_.proof);
  if (::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    log::warning("agent.seen", {{"why", system_error("cannot write " + path_, errno).what}});
}

}  // namespace slipway::agent
