#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <list>

#include "base/file.h"
#include "base/subprocess.h"
#include "gang_exec/find_mpi.h"
#include "gang_exec/horovod.h"
#include "gang_exec/launch.h"
#include "gang_exec/report.h"
#include "net/loop.h"
#include "net/server.h"

namespace slipway::gang_exec {
namespace {

constexpr Duration grace = 5s;
constexpr std::size_t line_max = 64u << 10;  // longer ones are put out in pieces

// One stream of a rank: its whole lines go out, each with the rank before it as horovodrun has it.
class LineCopy {
 public:
  LineCopy(net::Loop& loop, Fd from, int to, std::string tag)
      : from_(std::move(from)), to_(to), tag_(std::move(tag)) {
    watch_ = loop.watch(from_.get(), [this] { read(); });
  }
  LineCopy(const LineCopy&) = delete;
  LineCopy& operator=(const LineCopy&) = delete;
  bool is_open() const { return static_cast<bool>(from_); }
  void finish() {  // what the rank itself wrote; others may still hold the pipe
    while (is_open() && read()) {
    }
  }

 private:
  bool read() {
    char piece[16 * 1024];
    const ssize_t size = ::read(from_.get(), piece, sizeof piece);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size > 0) {
      rest_.append(piece, static_cast<std::size_t>(size));
      put_lines();
      return true;
    }
    if (!rest_.empty()) put(rest_ + "\n");
    rest_.clear();
    watch_.reset();
    from_.reset();
    return false;
  }

  void put_lines() {
    std::string text;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      text += tag_ + rest_.substr(begin, end + 1 - begin);
    rest_.erase(0, begin);
    if (rest_.size() > line_max) text += tag_ + std::exchange(rest_, {}) + "\n";
    (void)write_all(to_, text, "a stream");
  }
  void put(const std::string& line) const { (void)write_all(to_, tag_ + line, "a stream"); }

  Fd from_;
  int to_;
  std::string tag_;
  std::string rest_;
  std::shared_ptr<net::Loop::Watch> watch_;
};

class GlooLauncher {
 public:
  GlooLauncher(const Gang& gang, const Environment& own, const std::vector<std::string>& command)
      : gang_(gang),
        own_(own),
        command_(command),
        slots_(horovod_slots(std::vector<std::uint32_t>(gang.nodes.size(), gang.processes_per_node))),
        store_(gang, slots_) {}

  int run() {
    if (auto serving = serve_store(); !serving) return report(serving.error(), 1);
    loop_.on_signals({SIGTERM, SIGINT}, [this](int signal) { end_all(128 + signal); });
    for (const HorovodSlot& slot : slots_)
      if (auto started = start(slot); !started) {
        exit_code_ = report(started.error(), started.error().code == ErrorCode::not_found ? 127 : 1);
        return exit_code_;  // the ranks that run are ended with their objects
      }
    loop_.run();
    return exit_code_;
  }

 private:
  struct Rank {
    HorovodSlot slot;
    Subprocess child;
    std::shared_ptr<net::Loop::Watch> ended_watch{};
    std::unique_ptr<LineCopy> output{}, error_output{};
    std::optional<ExitStatus> end{};
    bool is_over = false;
  };

  Result<void> serve_store() {
    const GangNode& first = gang_.self();
    const auto policy = [](const net::Request&) {
      return net::BodyPolicy{.size_max = KeyValueStore::value_max};
    };
    const auto handler = [this](const std::shared_ptr<net::Exchange>& exchange) {
      const net::Request& request = exchange->request();
      KeyValueStore::Answer answer = store_.answer(request.method, request.path, request.body);
      // As Horovod's own store has it, which its client was tried with: a connection for each request.
      exchange->send(
          {.status = answer.status, .headers = {{"Connection", "close"}}, .body = std::move(answer.body)});
    };
    auto server = net::Server::listen(loop_, {.address = first.address, .port = first.port}, policy, handler);
    if (!server) {
      Error error = server.error();
      error.what = "Horovod's key-value store cannot be served: " + error.what;
      return fail(std::move(error));
    }
    server_ = std::move(*server);
    return {};
  }

  Result<void> start(const HorovodSlot& slot) {
    Environment variables = own_;
    for (const auto& [name, value] : gloo_variables(gang_, slot, own_)) variables[name] = value;
    std::vector<std::string> argv = command_;
    if (slot.node != gang_.own)
      argv = {own_program(),
              "node",
              "start-remote",
              "-n",
              gang_.nodes[slot.node].name,
              gloo_line(command_, own_)};
    auto child = Subprocess::start({.argv = argv,
                                    .environment = std::move(variables),
                                    .output = Stdio::pipe,
                                    .error_output = Stdio::pipe});
    if (!child) return fail(child.error());
    Rank& rank = ranks_.emplace_back(Rank{slot, std::move(*child)});
    rank.ended_watch = loop_.watch(rank.child.exited.get(), [this, &rank] { look(rank); });
    const auto copy = [&](Fd& from, int to, const char* name) {
      return std::make_unique<LineCopy>(loop_, std::move(from), to,
                                        fmt::format("[{}]<{}>:", slot.rank, name));
    };
    rank.output = copy(rank.child.output, STDOUT_FILENO, "stdout");
    rank.error_output = copy(rank.child.error_output, STDERR_FILENO, "stderr");
    return {};
  }

  void look(Rank& rank) {
    rank.end = rank.child.exit_status();
    if (!rank.end) return;
    rank.ended_watch.reset();
    rank.output->finish();
    rank.error_output->finish();
    rank.is_over = true;
    const int code = rank.end->exit_code();
    if (code != 0 && !ending_) {
      report({ErrorCode::internal,
              fmt::format("rank {} on node {} ended with exit code {}; the other ranks are ended",
                          rank.slot.rank, gang_.nodes[rank.slot.node].name, code),
              ""},
             code);
      end_all(code);
    }
    if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& each) { return each.is_over; }))
      loop_.stop();
  }

  void end_all(int code) {
    if (ending_) return;
    ending_ = true;
    exit_code_ = code;
    for (const Rank& rank : ranks_)
      if (!rank.is_over) rank.child.signal_group(SIGTERM);
    kill_timer_ = loop_.after(grace, [this] {
      for (const Rank& rank : ranks_)
        if (!rank.is_over) rank.child.kill_tree();
    });
  }

  const Gang& gang_;
  const Environment& own_;
  const std::vector<std::string>& command_;
  const std::vector<HorovodSlot> slots_;
  KeyValueStore store_;
  net::Loop loop_;
  std::unique_ptr<net::Server> server_;
  std::shared_ptr<net::Loop::Timer> kill_timer_;
  std::list<Rank> ranks_;
  bool ending_ = false;
  int exit_code_ = 0;
};

}  // namespace

int launch_horovod(const std::vector<std::string>& command) {
  Environment variables = read_environment();
  const auto gang = parse_gang(variables);
  if (!gang) return report(gang.error(), 1);
  if (gang->elastic) return launch_elastic_horovod(*gang, *gang->elastic, command, variables);
  const auto set = variables.find("SLIPWAY_HOROVOD");
  const std::string way = set == variables.end() ? "" : set->second;
  if (!way.empty() && way != "gloo" && way != "mpi")
    return report({ErrorCode::invalid, fmt::format("SLIPWAY_HOROVOD is '{}'", way), "gloo or mpi"}, 1);
  if (way != "gloo") {
    const auto mpi = find_mpi(gang->self().name, variables);
    const bool can = mpi && mpi->flavour == MpiFlavour::openmpi;
    if (can) return run_mpi(*gang, *mpi, command, std::move(variables), true);
    if (way == "mpi")
      return report(
          mpi ? Error{ErrorCode::not_found, fmt::format("node {} has no Open MPI", gang->self().name), ""}
              : mpi.error(),
          127);
  }
  if (gang->own != 0)
    return report({ErrorCode::invalid, "launch-horovod runs on the first node of a gang", ""}, 1);
  return GlooLauncher(*gang, variables, command).run();
}

}  // namespace slipway::gang_exec
