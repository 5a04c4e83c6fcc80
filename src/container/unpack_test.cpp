#include "container/unpack.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/subprocess.h"

namespace slipway::container {
namespace {

TEST(Unpack, Low_ATarballThatIsMadeToFillTheDiskIsStopped) {
  char folder[] = "/tmp/slipway-bomb-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string base = folder;
  std::filesystem::create_directories(base + "/root/bin");
  const std::string zeros = base + "/root/zeros";
  ASSERT_TRUE(write_file(zeros, ""));
  ASSERT_EQ(::truncate(zeros.c_str(), off_t{200} << 20), 0);
  const std::string tarball = base + "/bomb.tar.gz";
  // Not --sparse: the archive itself has the zeros, which compress to a thousandth.
  const auto packed = run_to_exit(
      {.argv = {"sh", "-c", "tar -C " + base + "/root -c . | gzip -1 > " + tarball}}, {.timeout = 2min});
  ASSERT_TRUE(packed);
  const auto done = unpacked(tarball, {{"PATH", "/usr/bin:/bin"}, {"SLIPWAY_NODE_CACHE", base + "/cache"}},
                             {.growth = 20, .free = Bytes{10} << 20});
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().what.find("holds more than"), std::string::npos) << done.error().what;
  std::uintmax_t left = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(base + "/cache"))
    if (entry.is_regular_file()) left += entry.file_size();
  EXPECT_EQ(left, 0u) << "what was unpacked of it stays";
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace slipway::container
