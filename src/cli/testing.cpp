#include "cli/testing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "base/check.h"
#include "base/file.h"

namespace slipway::cli {
namespace {

class Caught {  // one of our outputs, turned into memory while it exists
 public:
  Caught(int fd, FILE* stream) : fd_(fd), stream_(stream), memory_(::memfd_create("caught", MFD_CLOEXEC)) {
    std::fflush(stream_);
    before_ = Fd(::dup(fd_));
    ::dup2(memory_.get(), fd_);
  }
  ~Caught() { finish(); }
  std::string finish() {
    if (!before_) return {};
    std::fflush(stream_);
    ::dup2(before_.get(), fd_);
    before_.reset();
    std::string text(static_cast<std::size_t>(::lseek(memory_.get(), 0, SEEK_END)), '\0');
    const ssize_t got = ::pread(memory_.get(), text.data(), text.size(), 0);
    SLIPWAY_CHECK(got == static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  int fd_;
  FILE* stream_;
  Fd memory_, before_;
};

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "slipway-cli-XXXXXX").string();
  SLIPWAY_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a test has nothing to do about it
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& below, const std::string& content) const {
  const std::filesystem::path file = path(below);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

std::string TemporaryFolder::read(const std::string& below) const {
  std::ifstream file(path(below), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Ran run_cli(const std::vector<std::string>& words, const Programs& programs) {
  const TemporaryFolder home;
  ::setenv("SLIPWAY_HOME", home.path().c_str(), 1);
  ::unsetenv("SLIPWAY_SERVICE");
  ::unsetenv("SLIPWAY_TOKEN_FILE");
  std::vector<std::string> copies{"slipway"};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  Caught out(STDOUT_FILENO, stdout), err(STDERR_FILENO, stderr);
  Ran ran;
  ran.code = run(static_cast<int>(arguments.size()), arguments.data(), programs);
  ran.err = err.finish();
  ran.out = out.finish();
  return ran;
}

net::Response json_response(int status, const std::string& json) {
  return {status, {{"Content-Type", "application/json"}}, json};
}

FakeService::FakeService() {
  folder_.write("token", "secret\n");
  auto server = net::Server::listen(
      loop_, {}, [](const net::Request&) { return net::BodyPolicy{}; },
      [this](std::shared_ptr<net::Exchange> exchange) { answer(exchange); });
  SLIPWAY_CHECK(server.has_value());
  server_ = std::move(*server);
  thread_ = std::jthread([this] { loop_.run(); });
}

FakeService::~FakeService() {
  loop_.post([this] {
    server_->stop();
    loop_.stop();
  });
  thread_.join();
}

void FakeService::on(const std::string& method_and_path, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[method_and_path] = std::move(answer);
}

void FakeService::on(const std::string& method_and_path, int status, const std::string& json) {
  on(method_and_path, [status, json](const std::shared_ptr<net::Exchange>& exchange) {
    exchange->send(json_response(status, json));
  });
}

std::string FakeService::url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

Ran FakeService::run(std::vector<std::string> words) const {
  // Flags go before a `--`, and any command takes them right after its name.
  words.insert(words.begin(), {"--service", url(), "--token-file", folder_.path("token")});
  return run_cli(words);
}

void FakeService::answer(const std::shared_ptr<net::Exchange>& exchange) {
  const net::Request& request = exchange->request();
  Answer answer;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    const auto found = answers_.find(request.method + " " + request.path);
    if (found != answers_.end()) answer = found->second;
  }
  const auto problem = [](int status, const std::string& detail) {
    return json_response(status,
                         R"({"status":)" + std::to_string(status) + R"(,"detail":")" + detail + R"("})");
  };
  const bool is_open = request.method == "POST" && request.path == "/v1/login";
  if (!is_open && request.header("Authorization") != "Bearer secret")
    return exchange->send(problem(401, "the token is unknown"));
  if (!answer) return exchange->send(problem(404, "there is nothing at " + request.path));
  answer(exchange);
}

std::vector<std::string> FakeService::seen(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const net::Request& request : requests_) {
    std::string line = request.method + " " + request.target;
    if (line.starts_with(prefix)) lines.push_back(std::move(line));
  }
  return lines;
}

std::string FakeService::body_of(const std::string& method_and_path) const {
  const std::lock_guard lock(mutex_);
  for (auto request = requests_.rbegin(); request != requests_.rend(); ++request)
    if (request->method + " " + request->path == method_and_path) return request->body;
  return {};
}

}  // namespace slipway::cli
