#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "train/data/cifar.h"
#include "train/data/digits.h"
#include "train/data/find.h"
#include "train/data/idx.h"
#include "train/data/order.h"

namespace slipway::train {
namespace {

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}
std::string idx_images(std::uint32_t count, std::uint32_t side) {
  std::string text = big_endian(2051) + big_endian(count) + big_endian(side) + big_endian(side);
  for (std::uint32_t i = 0; i < count * side * side; ++i) text += static_cast<char>(i % 251);
  return text;
}
std::string idx_labels(std::uint32_t count, int step = 1) {
  std::string text = big_endian(2049) + big_endian(count);
  for (std::uint32_t i = 0; i < count; ++i)
    text += static_cast<char>(i * static_cast<std::uint32_t>(step) % 10);
  return text;
}
std::span<const std::uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class Folder {  // a temporary one
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slipway-data-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void put(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    ASSERT_TRUE(write_file_durably(path_ + "/" + name, content));
  }
  void put_mnist(const std::string& below = "") const {
    put(below + "train-images-idx3-ubyte", idx_images(30, 6));
    put(below + "train-labels-idx1-ubyte", idx_labels(30));
    put(below + "t10k-images-idx3-ubyte", idx_images(7, 6));
    put(below + "t10k-labels-idx1-ubyte", idx_labels(7));
  }

 private:
  std::string path_;
};

TEST(Idx, ReadsPlainAndGzipAlike) {
  const Folder plain, packed, cache;
  plain.put_mnist();
  for (const char* half : {"train", "t10k"})
    for (const char* kind : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
      const std::string name = std::string(half) + kind;
      packed.put(name + ".gz", gzip(read_file(plain.path() + "/" + name).value()));
    }
  const DataPair a = read_idx_folder(plain.path(), "mnist", "").value();
  EXPECT_EQ(a.train.count(), 30U);
  EXPECT_EQ(to_string(a.train.shape()), "1x6x6");
  for (const std::string& cached : {std::string(), cache.path(), cache.path()}) {  // made, then used
    const DataPair b = read_idx_folder(packed.path(), "mnist", cached).value();
    ASSERT_EQ(b.train.count(), a.train.count());
    for (std::size_t i = 0; i < a.train.count(); ++i) {
      EXPECT_TRUE(std::equal(a.train.image(i), a.train.image(i) + 36, b.train.image(i)));
      EXPECT_EQ(a.train.label(i), b.train.label(i));
    }
  }
  EXPECT_FALSE(std::filesystem::is_empty(cache.path()));
}

TEST(Idx, RefusesDamagedFiles) {
  const std::string good = idx_images(3, 4);
  struct Row {
    const char* rule;
    std::string content;
    const char* message;
  };
  const Row rows[] = {
      {"empty", "", "starts with nothing"},
      {"wrong magic", idx_labels(3), "starts with 2049, not 2051"},
      {"cut in the header", good.substr(0, 9), "cut off inside its header"},
      {"cut in the pixels", good.substr(0, good.size() - 1),
       "3 images of 4x4 are 48 bytes, and 47 are there"},
      {"too long", good + "x", "too long"},
      {"no images", idx_images(0, 4), "claims 0 images"},
      {"absurd count", big_endian(2051) + big_endian(0xffffffff) + big_endian(4000) + big_endian(4000),
       "cut off"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto images = parse_idx_images(bytes(row.content), "x.idx");
    ASSERT_FALSE(images);
    EXPECT_NE(images.error().what.find(row.message), std::string::npos) << images.error().what;
  }
  EXPECT_TRUE(parse_idx_images(bytes(good), "x.idx"));
  EXPECT_FALSE(parse_idx_labels(bytes(idx_labels(9).substr(0, 12)), "x.idx"));
}

TEST(Idx, RefusesFilesThatDoNotBelongTogether) {
  const Folder folder;
  folder.put_mnist();
  folder.put("train-labels-idx1-ubyte", idx_labels(29));
  EXPECT_NE(read_idx_folder(folder.path(), "mnist", "").error().what.find("30 images"), std::string::npos);
  std::string high = idx_labels(30);
  high[8 + 4] = 10;
  folder.put("train-labels-idx1-ubyte", high);
  EXPECT_NE(read_idx_folder(folder.path(), "mnist", "").error().what.find("the label of sample 4 is 10"),
            std::string::npos);
  std::filesystem::remove(folder.path() + "/t10k-images-idx3-ubyte");
  folder.put("train-labels-idx1-ubyte", idx_labels(30));
  EXPECT_EQ(read_idx_folder(folder.path(), "mnist", "").error().code, ErrorCode::not_found);
}

TEST(Gzip, RefusesWhatIsCutDamagedOrTooLarge) {
  const std::string good = gzip(std::string(100'000, 'a'));
  EXPECT_EQ(gunzip(bytes(good), 200'000, "f").value().size(), 100'000U);
  EXPECT_NE(gunzip(bytes(good.substr(0, good.size() / 2)), 200'000, "f").error().what.find("cut off"),
            std::string::npos);
  std::string damaged = good;
  damaged[good.size() / 2] ^= 0x55;
  EXPECT_FALSE(gunzip(bytes(damaged), 200'000, "f"));
  EXPECT_FALSE(gunzip(bytes("not gzip at all"), 200'000, "f"));
  EXPECT_FALSE(gunzip({}, 200'000, "f"));
  EXPECT_EQ(gunzip(bytes(good), 5'000, "f").error().code, ErrorCode::too_large);
}

TEST(Cifar, ReadsRecordsAndRefusesOthers) {
  const Folder folder;
  std::string record(cifar_record_bytes, '\7');
  std::string two = record + record;
  two[cifar_record_bytes] = 3;
  two[cifar_record_bytes + 1] = 99;
  folder.put("data_batch_1.bin", two);
  folder.put("data_batch_2.bin", record);
  folder.put("test_batch.bin", record);
  const DataPair data = read_cifar_folder(folder.path()).value();
  EXPECT_EQ(data.train.count(), 3U);
  EXPECT_EQ(data.train.label(1), 3);
  EXPECT_EQ(data.train.image(1)[0], 99);
  EXPECT_EQ(data.train.label(2), 7);
  EXPECT_FALSE(parse_cifar(bytes(record.substr(1)), "f"));
  EXPECT_FALSE(parse_cifar({}, "f"));
  record[0] = 10;
  EXPECT_NE(parse_cifar(bytes(record), "f").error().what.find("label of record 0 is 10"), std::string::npos);
}

TEST(Digits, AreTheSameForASeed) {
  const DataPair a = draw_digits(5, {50, 10}), b = draw_digits(5, {50, 10}), c = draw_digits(6, {50, 10});
  bool differs = false;
  std::set<int> seen;
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(std::equal(a.train.image(i), a.train.image(i) + 784, b.train.image(i)));
    differs = differs || !std::equal(a.train.image(i), a.train.image(i) + 784, c.train.image(i));
    seen.insert(a.train.label(i));
  }
  EXPECT_TRUE(differs);
  EXPECT_GE(seen.size(), 8U);
  EXPECT_LT(a.train.density(), 0.5) << "mostly paper, so that the sparse kernels are exercised";
}

TEST(Order, CoversAnEpochWithoutOverlap) {
  Order order(9, {103, 5, 4});
  EXPECT_EQ(order.steps_per_epoch(), 5U);
  std::multiset<std::uint32_t> seen;
  for (std::uint64_t step = 0; step < 5; ++step)
    for (std::size_t worker = 0; worker < 4; ++worker)
      for (const std::uint32_t index : order.at(step, worker)) seen.insert(index);
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), 100U);
}

TEST(Order, OneWorkerWithTheGlobalBatchSeesTheSame) {
  Order four(9, {103, 5, 4}), one(9, {103, 20, 1});
  for (std::uint64_t step : {0U, 3U, 7U, 2U}) {  // also back in time, as after a restart
    std::vector<std::uint32_t> joined;
    for (std::size_t worker = 0; worker < 4; ++worker) {
      const auto part = four.at(step, worker);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    const auto whole = one.at(step, 0);
    EXPECT_EQ(joined, std::vector<std::uint32_t>(whole.begin(), whole.end()));
  }
}

TEST(FindData, ReportsWhichDataWasFound) {
  const Folder home, packages;
  home.put_mnist("mnist/");
  packages.put_mnist("fashion-mnist/");
  const DataPlaces places{.home = home.path(), .packages = packages.path(), .cache = ""};
  EXPECT_EQ(find_data({}, places).value().name, "mnist") << "the user's own folder comes first";
  EXPECT_EQ(find_data({.folder = "", .dataset = "fashion-mnist"}, places).value().where,
            packages.path() + "/fashion-mnist");
  EXPECT_EQ(find_data({.folder = home.path() + "/mnist", .dataset = ""}, places).value().name, "mnist");
  EXPECT_EQ(find_data({.folder = home.path(), .dataset = "mnist"}, places).value().name, "mnist");
  EXPECT_EQ(find_data({}, {.home = "", .packages = "/nowhere", .cache = ""}).value().name, "synthetic");
  EXPECT_EQ(find_data({.folder = "synthetic", .dataset = ""}, places).value().name, "synthetic");
  const DataPlaces drawn{.home = "synthetic", .packages = packages.path(), .cache = ""};
  EXPECT_EQ(find_data({}, drawn).value().name, "synthetic")
      << "a request for drawn digits comes before packages";
  const auto absent = find_data({.folder = "", .dataset = "cifar10"}, places);
  EXPECT_EQ(absent.error().code, ErrorCode::not_found);
  EXPECT_EQ(find_data({.folder = "", .dataset = "minst"}, places).error().hint, "did you mean mnist?");
  EXPECT_NE(find_data({.folder = home.path() + "/none", .dataset = ""}, places)
                .error()
                .what.find("holds no data set"),
            std::string::npos);
}

}  // namespace
}  // namespace slipway::train
