#include "gang_exec/start_remote.h"

#include <gtest/gtest.h>

#include "base/shell.h"
#include "gang_exec/test_support.h"

namespace slipway::gang_exec {
namespace {

TEST(StartRemote, ParsesArgumentsOfSsh) {
  const auto command =
      parse_remote_command({"-x", "-q", "-l", "ana", "-o", "BatchMode=yes", "-obar", "h", "ls", "-l", "--"});
  ASSERT_TRUE(command);
  EXPECT_EQ(command->host, "h");
  EXPECT_EQ(command->line, "ls -l --");
  EXPECT_TRUE(command->reads_input);
  EXPECT_FALSE(parse_remote_command({"-n", "h", "ls"})->reads_input);
  for (const Words& wrong : {Words{}, Words{"h"}, Words{"-l"}, Words{"--other", "h", "ls"}, Words{"-x", "h"}})
    EXPECT_FALSE(parse_remote_command(wrong));
  EXPECT_EQ(missing_daemon("PATH=/x/bin:$PATH ; /x/bin/orted -mca a b", "lab-2")->what,
            "orted cannot be run on node lab-2");
  EXPECT_FALSE(missing_daemon("python3 train.py", "lab-2"));
  EXPECT_EQ(quote_for_shell({"it's", "$a b", ""}), R"('it'\''s' '$a b' '')");
}

}  // namespace
}  // namespace slipway::gang_exec
