#include "domain/layout.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

TEST(Layout, OnlyFoldersOfJobsAreTakenForSuch) {
  EXPECT_TRUE(is_job_folder(job_folder("default", JobId{7})));
  for (const char* other :
       {"", "workspaces/default/jobs", "workspaces/default/jobs/", "workspaces/default/jobs/job_7/x",
        "workspaces/default/jobs/..", "workspaces/../jobs/job_7", "/workspaces/default/jobs/job_7",
        "workspaces//jobs/job_7", "workspaces/a/b/jobs/job_7", "workspaces/default/nodes/job_7"})
    EXPECT_FALSE(is_job_folder(other)) << other;
}

}  // namespace
}  // namespace slipway
