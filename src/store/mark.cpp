#include "store/mark.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/log.h"
#include "base/sha256.h"

namespace slipway::store {
namespace {

// Of one size, so that it is written over in place, by one call.
std::string format_mark(const Mark& mark) {
  const std::string content =
      fmt::format("slipway service {} turn {:020} job {:020} node {:020} event {:020}", mark.service,
                  mark.turn, mark.job_last, mark.node_last, mark.event_last);
  return fmt::format("{} check {}\n", content, sha256_hex(content).substr(0, 16));
}

std::optional<Mark> parse_mark(const std::string& text) {
  Mark mark;
  char service[65] = {};
  unsigned long long turn = 0, job = 0, node = 0, event = 0;
  if (std::sscanf(text.c_str(), "slipway service %64s turn %llu job %llu node %llu event %llu", service,
                  &turn, &job, &node, &event) != 5)
    return std::nullopt;
  mark = {service, turn, job, node, event};
  return format_mark(mark) == text ? std::optional(mark) : std::nullopt;
}

}  // namespace

std::string MarkFile::path_beside(const std::string& database) {
  return (std::filesystem::path(database).parent_path() / "service.mark").string();
}

Result<std::optional<Mark>> MarkFile::read(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text && text.error().code == ErrorCode::not_found) return std::nullopt;
  if (!text) return fail(text.error());
  const std::optional<Mark> mark = parse_mark(*text);
  if (!mark) return fail(ErrorCode::conflict, path + " is damaged");
  return mark;
}

Result<MarkFile> MarkFile::create(const std::string& path, const Mark& mark) {
  const Result<std::optional<Mark>> known = read(path);
  if (!known || !*known)
    if (auto written = write_file_durably(path, format_mark(mark), 0600); !written)
      return fail(written.error());
  Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return fail(system_error("cannot open " + path, errno));
  MarkFile made(std::move(file));
  made.write(mark);
  if (::fsync(made.file_.get()) != 0) return fail(system_error("cannot sync " + path, errno));
  return made;
}

void MarkFile::write(const Mark& mark) const {
  if (!file_) return;
  const std::string text = format_mark(mark);
  if (::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    log::warning("store.mark", {{"why", system_error("cannot write service.mark", errno).what}});
}

}  // namespace slipway::store
