#include "agent/process_age.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace slipway::agent {
namespace {

TEST(ProcessAge, IsThatOfTheKernel) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const Duration before = boot_time();
  const auto young = process_age(child);
  ASSERT_TRUE(young);
  EXPECT_LT(*young, 30s);
  ::poll(nullptr, 0, 50);
  const auto older = process_age(child);
  ASSERT_TRUE(older);
  EXPECT_GT(*older, *young);
  EXPECT_LE(*older - *young, boot_time() - before + 10ms);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_age(child));
}

}  // namespace
}  // namespace slipway::agent
