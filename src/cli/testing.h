#pragma once
// For tests of the command line: a folder that goes away, a command run with its output caught, and a service
// made of a table of answers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/cli.h"
#include "net/loop.h"
#include "net/server.h"

namespace slipway::cli {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& below = {}) const {
    return below.empty() ? path_ : path_ + "/" + below;
  }
  void write(const std::string& below, const std::string& content) const;
  std::string read(const std::string& below) const;

 private:
  std::string path_;
};

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};
// Runs one command line in this process, without any service of the machine's in sight.
Ran run_cli(const std::vector<std::string>& words, const Programs& programs = {});

class FakeService {
 public:
  using Answer = std::function<void(const std::shared_ptr<net::Exchange>&)>;
  FakeService();
  ~FakeService();

  // "GET /v1/pools", without the query. An unknown one is answered with 404.
  void on(const std::string& method_and_path, Answer answer);
  void on(const std::string& method_and_path, int status, const std::string& json);
  std::string url() const;
  Ran run(std::vector<std::string> words) const;  // run_cli with --service and --token-file
  const TemporaryFolder& folder() const { return folder_; }

  // "PUT /v1/blobs/…" in the order they came; `prefix` selects.
  std::vector<std::string> seen(const std::string& prefix) const;
  std::string body_of(const std::string& method_and_path) const;  // of the last such request

 private:
  void answer(const std::shared_ptr<net::Exchange>& exchange);

  TemporaryFolder folder_;
  net::Loop loop_;
  std::unique_ptr<net::Server> server_;
  mutable std::mutex mutex_;
  std::map<std::string, Answer> answers_;  // guarded by mutex_
  std::vector<net::Request> requests_;     // guarded by mutex_
  std::jthread thread_;
};

net::Response json_response(int status, const std::string& json);

}  // namespace slipway::cli
