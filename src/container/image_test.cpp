#include "container/image.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "container/docker.h"
#include "container/driver.h"
#include "container/engines.h"
#include "container/execute.h"
#include "container/unpack.h"

namespace slipway::container {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const ImageRun torch{
    "lab/torch:2",
    {"python3", "--version"},
    "/work",
    {{"/data", true}, {"/work"}},
    {{"GREETING", "hello there"}, {"PATH", "/usr/bin"}, {"HOME", "/home/a"}, {"BASH_FUNC_x%%", "()"}},
    {"/dev/infiniband", "/dev/nvidia0"},
    {"/usr/lib/libcuda.so.1"}};

TEST(Podman, PassesVariablesAndFoldersButKeepsTheImagesPath) {
  const std::vector<std::string> words = podman_command("podman", torch, {.has_init = true});
  EXPECT_EQ(words[1], "run");
  for (const char* word :
       {"--rm", "--network=host", "--cgroups=disabled", "--init", "--user=0:0", "--workdir=/work",
        "--volume=/data:/data:ro", "--volume=/work:/work", "--env=GREETING", "--entrypoint="})
    EXPECT_TRUE(has(words, word)) << word;
  for (const char* word : {"--env=PATH", "--env=HOME", "--env=BASH_FUNC_x%%", "--userns=keep-id"})
    EXPECT_FALSE(has(words, word)) << word;
  const std::vector<std::string> end(words.end() - 3, words.end());
  EXPECT_EQ(end, (std::vector<std::string>{"lab/torch:2", "python3", "--version"}));
}

TEST(Podman, AdaptsToTheMachine) {
  const std::vector<std::string> own =
      podman_command("podman", torch, {.maps_users = true, .has_crun = false});
  EXPECT_TRUE(has(own, "--userns=keep-id"));
  EXPECT_TRUE(has(own, "--cgroups=no-conmon"));
  EXPECT_FALSE(has(own, "--init"));
  EXPECT_TRUE(has(own, "--device=/dev/nvidia0"));
  EXPECT_TRUE(has(own, "--volume=/usr/lib/libcuda.so.1:/.slipway/driver/libcuda.so.1:ro"));
  const std::vector<std::string> spec = podman_command("podman", torch, {.has_gpu_spec = true});
  EXPECT_TRUE(has(spec, "--device=nvidia.com/gpu=all"));
  EXPECT_TRUE(has(spec, "--device=/dev/infiniband"));
  EXPECT_FALSE(has(spec, "--device=/dev/nvidia0"));
}

TEST(Docker, PassesWhatPodmanDoesAndEndsWithItsClient) {
  const std::vector<std::string> words = docker_command("docker", torch, {1000, 100, 4096});
  for (const char* word :
       {"--rm", "--interactive", "--init", "--network=host", "--user=1000:100", "--env=HOME=/tmp",
        "--ulimit=nofile=4096:4096", "--volume=/data:/data:ro", "--volume=/work:/work", "--env=GREETING",
        "--gpus=all", "--device=/dev/infiniband", "--workdir=/work", "--entrypoint=/bin/sh"})
    EXPECT_TRUE(has(words, word)) << word;
  for (const char* word : {"--env=PATH", "--env=HOME", "--env=BASH_FUNC_x%%", "--device=/dev/nvidia0"})
    EXPECT_FALSE(has(words, word)) << word;
  const std::size_t image =
      static_cast<std::size_t>(std::find(words.begin(), words.end(), "lab/torch:2") - words.begin());
  ASSERT_EQ(words.size(), image + 6);
  EXPECT_EQ(words[image + 1], "-c");
  EXPECT_NE(words[image + 2].find("exec \"$@\""), std::string::npos) << words[image + 2];
  EXPECT_EQ(words[image + 4] + " " + words[image + 5], "python3 --version");
}

TEST(Docker, NeedsItsDaemon) {
  EXPECT_FALSE(has_docker({{"PATH", "/no/such/folder"}, {"DOCKER_HOST", "tcp://x"}}));
}

TEST(Apptainer, UsesItsOwnImageNames) {
  struct Row {
    const char* given;
    const char* expected;
  };
  const Row rows[] = {{"lab/torch:2", "docker://lab/torch:2"},
                      {"oci-archive:/a.tar", "oci-archive:/a.tar"},
                      {"docker-archive:a.tar", "docker-archive:a.tar"},
                      {"docker://x/y", "docker://x/y"},
                      {"torch.sif", "torch.sif"},
                      {"/images/torch", "/images/torch"}};
  for (const Row& row : rows) {
    ImageRun run = torch;
    run.image = row.given;
    const std::vector<std::string> words = apptainer_command("apptainer", run);
    EXPECT_EQ(*(words.end() - 3), row.expected);
    EXPECT_TRUE(has(words, "--nv") && has(words, "--bind=/data:/data:ro") && has(words, "--pwd=/work"));
  }
}

TEST(Unpack, CacheFolderIsTheSettingElseHomeElseBeside) {
  EXPECT_EQ(cache_folder({{"SLIPWAY_NODE_CACHE", "/c"}, {"HOME", "/h"}}, "/i/a.tar"), "/c/rootfs");
  EXPECT_EQ(cache_folder({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}, "/i/a.tar"), "/x/slipway/rootfs");
  EXPECT_EQ(cache_folder({{"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}, "/i/a.tar"), "/h/.cache/slipway/rootfs");
  EXPECT_EQ(cache_folder({}, "/i/a.tar"), "/i/.slipway-rootfs");
}

TEST(Driver, RecognizesDriverFiles) {
  for (const char* name : {"nvidia0", "nvidiactl", "nvidia-caps", "infiniband", "kfd"})
    EXPECT_TRUE(is_accelerator(name));
  for (const char* name : {"null", "sda", "kvm"}) EXPECT_FALSE(is_accelerator(name));
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.550.1"}) EXPECT_TRUE(is_driver_library(name));
  for (const char* name : {"libcudart.so.12", "libcuda.so", "libc.so.6"})
    EXPECT_FALSE(is_driver_library(name));
}

TEST(Engines, AreKnownWords) {
  for (const std::string& engine : engines())
    EXPECT_TRUE(engine == "rootfs" || engine == "podman" || engine == "apptainer") << engine;
}

}  // namespace
}  // namespace slipway::container
