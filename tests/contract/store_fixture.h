#pragma once
// What one suite over every implementation of the Store and ReadStore ports has: each of them, and a job.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/file.h"
#include "store/database.h"
#include "store/memory.h"
#include "store/sqlite.h"

namespace slipway {

using control::Changes;
using control::Store;

// A store that can be closed and opened again on the same data.
struct Home {
  const char* name;
  std::function<std::unique_ptr<Store>(const std::string& folder)> open;
  bool keeps = true;  // survives being opened anew
};

class StoreContract : public testing::TestWithParam<Home> {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/slipway-store-XXXXXX";
    folder_ = mkdtemp(pattern);
    reopen();
  }
  void TearDown() override {
    reader_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void reopen() {
    if (store_ && !GetParam().keeps) return;
    reader_.reset();
    store_.reset();
    store_ = GetParam().open(folder_);
    ASSERT_NE(store_, nullptr);
  }
  void save(const Changes& changes) {
    const auto saved = store_->save(changes);
    ASSERT_TRUE(saved) << saved.error().what;
  }

  // What the threads beside the control thread read with.
  control::ReadStore& reads() {
    if (!reader_) reader_ = store_->open_reader().value();
    return *reader_;
  }

  std::string folder_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<control::ReadStore> reader_;
};

inline TimePoint at(std::int64_t seconds) { return TimePoint(std::chrono::seconds(seconds)); }

inline control::NewJob new_job(std::uint64_t id, std::string name = "train") {
  control::NewJob fresh;
  fresh.spec.name = name;
  fresh.spec.pool = "lab";
  fresh.spec.environment = {{"EMPTY", ""}, {"RATE", "0.1=x:y\nz"}};
  TaskSpec prepare;
  prepare.name = "prepare";
  prepare.command = std::string("mkdir x");
  TaskSpec sweep;
  sweep.name = "sweep";
  sweep.command = std::vector<std::string>{"./run", "{index}", "ünïcode"};
  sweep.count = 5;
  sweep.depends_on = {"prepare"};
  sweep.environment = {{"A", "b"}};
  sweep.retries = 2;
  sweep.max_wall_time = 1500ms;
  sweep.resources = {.cores = 500, .memory = 1 << 20, .gpus = 1};
  fresh.spec.tasks = {prepare, sweep};
  fresh.job = {.id = JobId{id},
               .name = name,
               .pool = "lab",
               .submitted_by = "ana",
               .submitted_at = at(5),
               .started_at = {},
               .ended_at = {},
               .counts = {.waiting = 5, .queued = 1}};
  return fresh;
}

inline Home sqlite_home() {
  return {"sqlite", [](const std::string& folder) -> std::unique_ptr<Store> {
            auto store = store::open_sqlite(folder + "/slipway.db");
            return store ? std::move(*store) : nullptr;
          }};
}
inline Home memory_home() {
  return {"memory", [](const std::string&) -> std::unique_ptr<Store> { return store::make_memory_store(); },
          false};
}

}  // namespace slipway
