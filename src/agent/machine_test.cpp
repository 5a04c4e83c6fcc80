#include "agent/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace slipway::agent {
namespace {

TEST(LastLines, Low_ProgressThatIsWrittenOverIsOneShortLine) {
  char file[] = "/tmp/slipway-lines-XXXXXX";
  ::close(::mkstemp(file));
  struct Row {
    const char* written;
    const char* shown;
  };
  const Row rows[] = {
      {"one\ntwo\n", "one\ntwo"},
      {"epoch 1\n 10%\r 20%\r100%\nfailed\n", "epoch 1\n100%\nfailed"},
      {"a\r\nb\r\n", "a\nb"},
      {" 10%\r 20%\r", " 20%"},
      {"\r\r", ""},
  };
  for (const Row& row : rows) {
    ASSERT_TRUE(write_file(file, row.written));
    EXPECT_EQ(last_lines_of(file), row.shown) << row.written;
  }
  ::unlink(file);
}

}  // namespace
}  // namespace slipway::agent
