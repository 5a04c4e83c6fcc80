#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/random.h"
#include "train/data/bytes.h"
#include "train/state/checkpoint.h"
#include "train/state/events.h"
#include "train/state/writer.h"

namespace slipway::train {
namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slipway-state-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<float> noise(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.unit());
  return values;
}

CheckpointInfo info_at(std::uint64_t step) {
  return {.model = "{name: n, input: [1, 2, 2], layers: [{dense: 10}]}",
          .dataset = "mnist",
          .classes = 10,
          .step = step,
          .seed = 7,
          .workers = 2,
          .batch = 100,
          .optimizer = "adam",
          .shard = 0,
          .shards = 1,
          .accuracy = 0.975};
}

std::span<const std::uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void flip_bit(const std::string& path, std::size_t at) {
  std::string content = read_file(path).value();
  content.at(at) = static_cast<char>(content.at(at) ^ 0x10);
  ASSERT_TRUE(write_file_durably(path, content));
}

TEST(Crc32c, KnownAnswersAndTheReference) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283U);
  EXPECT_EQ(crc32c("", 0), 0U);
  const std::string zeros(32, '\0');
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8a9136aaU);
  const std::vector<float> data = noise(30'000, 1);
  for (const std::size_t size : {1UL, 7UL, 8UL, 4096UL, 12287UL, 12288UL, 12289UL, 50'001UL, 100'000UL}) {
    EXPECT_EQ(crc32c(data.data(), size), crc32c_reference(data.data(), size)) << size;
    EXPECT_EQ(crc32c(reinterpret_cast<const char*>(data.data()) + size / 3, size - size / 3,
                     crc32c(data.data(), size / 3)),
              crc32c(data.data(), size));
  }
}

TEST(Checkpoint, ReadsBackWhatWasWritten) {
  const Folder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const std::vector<float> values = noise(1003, 1), state = noise(77, 2);
  ASSERT_TRUE(write_checkpoint(path, info_at(12), values, state));
  const auto read = read_checkpoint(path);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->info, info_at(12));
  EXPECT_EQ(read->values, values);
  EXPECT_EQ(read->state, state);
}

TEST(Checkpoint, DetectsEveryFlippedBitAndTruncation) {
  const Folder folder;
  const std::string path = folder.path() + "/a.ckpt";
  ASSERT_TRUE(write_checkpoint(path, info_at(12), noise(20, 1), noise(5, 2)));
  const std::string good = read_file(path).value();
  std::size_t padding = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto read = parse_checkpoint(bytes(bad), "x");
    if (!read) continue;
    ++padding;  // zeros between sections carry nothing
    EXPECT_EQ(read->values, noise(20, 1));
  }
  EXPECT_LT(padding, 3 * 64U);
  for (std::size_t size = 0; size < good.size() - 64; ++size)
    EXPECT_FALSE(parse_checkpoint(bytes(good.substr(0, size)), "x")) << size;
  EXPECT_NE(parse_checkpoint(bytes("hello"), "x").error().what.find("not a Slipway checkpoint"),
            std::string::npos);
}

TEST(CheckpointFolder, KeepsTheNewestAndSkipsDamagedOnes) {
  const Folder folder;
  CheckpointFolder kept(folder.path() + "/deep/er", 3);
  for (std::uint64_t step = 10; step <= 60; step += 10)
    ASSERT_TRUE(kept.save(info_at(step), noise(100, step), noise(10, step)));
  EXPECT_EQ(kept.steps(), (std::vector<std::uint64_t>{40, 50, 60}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(kept.path()), {}), 3)
      << "nothing is left beside";
  flip_bit(kept.path() + "/step-000000000060.ckpt", 700);
  std::vector<Error> passed_over;
  const auto newest = kept.load_newest(passed_over);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->info.step, 50U);
  EXPECT_EQ(newest->values, noise(100, 50));
  ASSERT_EQ(passed_over.size(), 1U);
  EXPECT_NE(passed_over[0].what.find("step-000000000060.ckpt: its values are damaged"), std::string::npos)
      << passed_over[0].what;
}

TEST(CheckpointFolder, RollbackRemovesLaterCheckpoints) {
  const Folder folder;
  CheckpointFolder kept(folder.path(), 3);
  for (const std::uint64_t step : {10U, 20U, 30U}) ASSERT_TRUE(kept.save(info_at(step), noise(10, step), {}));
  ASSERT_TRUE(kept.save(info_at(15), noise(10, 15), {}));
  EXPECT_EQ(kept.steps(), (std::vector<std::uint64_t>{10, 15}));
}

TEST(CheckpointFolder, FullDiskKeepsOldCheckpoints) {
  const Folder folder;
  CheckpointFolder kept(folder.path(), 3);
  ASSERT_TRUE(kept.save(info_at(10), noise(1000, 10), {}));
  // A file-size limit stands in for the full disk: the write fails half way just the same.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20'000, 20'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto saved = kept.save(info_at(20), noise(100'000, 20), {});
    ::_exit(!saved && saved.error().what.find("cannot write") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(kept.steps(), (std::vector<std::uint64_t>{10}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(kept.path()), {}), 1);
}

TEST(CheckpointWriter, WritesInTheBackgroundAndReportsFailure) {
  const Folder folder;
  {
    CheckpointWriter writer(CheckpointFolder(folder.path() + "/c", 2));
    std::vector<float> values = noise(50'000, 1);
    EXPECT_TRUE(writer.start(info_at(5), [&](std::vector<float>& to, std::vector<float>&) { to = values; }));
    EXPECT_FALSE(writer.start(info_at(6), [&](std::vector<float>&, std::vector<float>&) {}))
        << "one at a time; the next comes soon";
    writer.wait_copied();
    for (float& v : values) v = -1;  // training goes on
    EXPECT_TRUE(writer.finish());
    EXPECT_EQ(writer.saved_step(), 5U);
  }
  EXPECT_EQ(CheckpointFolder(folder.path() + "/c", 2).load(5).value().values, noise(50'000, 1));
  ASSERT_TRUE(write_file_durably(folder.path() + "/file", "in the way"));
  CheckpointWriter blocked(CheckpointFolder(folder.path() + "/file/c", 2));
  EXPECT_TRUE(blocked.start(info_at(5), [&](std::vector<float>& to, std::vector<float>&) { to = {1}; }));
  EXPECT_FALSE(blocked.finish());
  EXPECT_TRUE(blocked.finish()) << "an error is reported once";
}

std::string hex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    constexpr char digits[] = "0123456789abcdef";
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[c & 15];
  }
  return out;
}

TEST(Events, GoldenRecords) {
  std::string version("\x09\0\0\0\0\x84\xd7\xd7\x41\x1a\x0d", 11);
  version += "brain.Event:2";
  EXPECT_EQ(hex(event_record(version)),
            "1800000000000000a37f4b22090000000084d7d7411a0d627261696e2e4576656e743a32253c71d0");
  std::string loss("\x09\0\0\0\0\x84\xd7\xd7\x41\x10\x05\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f", 26);
  EXPECT_EQ(hex(event_record(loss)),
            "1a00000000000000129bd82d090000000084d7d74110052a0d0a0b0a046c6f7373150000003f11d00aa5");
}

TEST(Events, HistogramsCountEveryValue) {
  const std::vector<float> values = {0, 1, 2, 3, 3};
  const auto rows = histogram(values, 3);
  EXPECT_EQ(rows[0].count, 1);
  EXPECT_EQ(rows[1].count, 1);
  EXPECT_EQ(rows[2].count, 3);
  EXPECT_EQ(rows[2].right, 3);
  EXPECT_EQ(histogram(std::vector<float>{5, 5}, 3)[2].count, 2);
  EXPECT_EQ(histogram({}, 3)[1].count, 0);
}

TEST(Events, FileIsASequenceOfValidRecords) {
  const Folder folder;
  auto file = EventFile::create(folder.path() + "/run", 1.6e9);
  ASSERT_TRUE(file) << file.error().what;
  ASSERT_TRUE(file->scalar(1.6e9, 1, "loss", 0.5F));
  ASSERT_TRUE(file->histogram(1.6e9, 1, "weights", noise(100, 1)));
  ASSERT_TRUE(file->hyperparameters(1.6e9, {{"rate", 0.5}, {"model", std::string("mlp")}, {"sync", true}}));
  ASSERT_TRUE(file->restarted_at(1.6e9, 5));
  const std::string content = read_file(file->path()).value();
  std::size_t at = 0, records = 0;
  while (at < content.size()) {
    std::uint64_t size = 0;
    ASSERT_LE(at + 16, content.size());
    std::memcpy(&size, content.data() + at, 8);
    ASSERT_LE(at + 16 + size, content.size());
    EXPECT_EQ(content.substr(at, 16 + size), event_record(content.substr(at + 12, size)));
    at += 16 + size;
    ++records;
  }
  EXPECT_EQ(records, 5U);
  EXPECT_NE(file->path().find("events.out.tfevents.1600000000."), std::string::npos);
}

}  // namespace
}  // namespace slipway::train
