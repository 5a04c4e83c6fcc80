#include "container/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace slipway::container {
namespace {

using Kind = Step::Kind;
using Folders = std::map<std::string, std::vector<Entry>>;

ReadFolder tree(Folders folders) {
  return [folders = std::move(folders)](const std::string& folder) {
    const auto found = folders.find(folder);
    return found == folders.end() ? std::vector<Entry>() : found->second;
  };
}

Entry folder(const char* name) { return {name, EntryKind::folder, ""}; }
Entry file(const char* name) { return {name, EntryKind::file, ""}; }
Entry link(const char* name, const char* to) { return {name, EntryKind::link, to}; }

const Folders plain{{"/",
                     {link("bin", "usr/bin"),
                      folder("usr"),
                      folder("etc"),
                      folder("proc"),
                      folder("tmp"),
                      folder("home"),
                      folder("var"),
                      {"pipe", EntryKind::other, ""}}},
                    {"/etc", {file("hosts"), file("passwd"), link("resolv.conf", "../run/dns/conf")}},
                    {"/home", {folder("old")}},
                    {"/var", {link("run", "/run"), folder("lib")}}};

// The first step for a path, or nothing.
const Step* step_for(const std::vector<Step>& steps, const std::string& target) {
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.target == target; });
  return found == steps.end() ? nullptr : &*found;
}

std::ptrdiff_t position(const std::vector<Step>& steps, const std::string& target) {
  return step_for(steps, target) == nullptr ? -1 : step_for(steps, target) - steps.data();
}

TEST(Plan, TheRootFileSystemIsReadOnlyAndLinksAreMadeAgain) {
  const std::vector<Step> steps = plan(tree(plain), {});
  ASSERT_NE(step_for(steps, "/usr"), nullptr);
  EXPECT_EQ(*step_for(steps, "/usr"), (Step{.kind = Kind::root_bind, .target = "/usr", .read_only = true}));
  EXPECT_EQ(*step_for(steps, "/bin"), (Step{Kind::link, "/bin", "usr/bin"}));
  EXPECT_EQ(step_for(steps, "/pipe"), nullptr) << "only files, folders and links";
  for (const Step& step : steps) EXPECT_TRUE(step.kind != Kind::root_bind || step.read_only) << step.target;
}

TEST(Plan, TheMachineGivesProcSysAndDevicesAndTmpIsNew) {
  const std::vector<Step> steps = plan(tree(plain), {.devices = {"/dev/null"}, .has_machine_shm = false});
  EXPECT_EQ(step_for(steps, "/proc")->kind, Kind::bind);
  EXPECT_TRUE(step_for(steps, "/proc/sys")->read_only);
  EXPECT_TRUE(step_for(steps, "/sys")->read_only);
  EXPECT_EQ(*step_for(steps, "/tmp"), (Step{.kind = Kind::tmpfs, .target = "/tmp", .mode = 01777}));
  EXPECT_EQ(step_for(steps, "/dev/null")->source, "/dev/null");
  EXPECT_LT(position(steps, "/dev"), position(steps, "/dev/null"));
  EXPECT_EQ(step_for(steps, "/dev/shm")->kind, Kind::tmpfs);
  EXPECT_EQ(step_for(plan(tree(plain), {}), "/dev/shm")->kind, Kind::bind);
}

TEST(Plan, FolderIsSplitOnlyWhereAMountPointIsMissing) {
  const std::vector<Step> steps = plan(tree(plain), {.shares = {{"/home/ana/work"}, {"/data"}}});
  EXPECT_EQ(step_for(steps, "/home")->kind, Kind::folder);
  EXPECT_EQ(step_for(steps, "/home/old")->kind, Kind::root_bind);
  EXPECT_LT(position(steps, "/home"), position(steps, "/home/old"));
  EXPECT_EQ(*step_for(steps, "/home/ana/work"),
            (Step{.kind = Kind::bind, .target = "/home/ana/work", .source = "/home/ana/work"}));
  EXPECT_EQ(step_for(steps, "/etc")->kind, Kind::root_bind) << "hosts is there, resolv.conf leads to /run";
  EXPECT_EQ(step_for(steps, "/usr")->kind, Kind::root_bind);

  const std::vector<Step> present = plan(tree(plain), {.shares = {{"/home/old"}}});
  EXPECT_EQ(step_for(present, "/home")->kind, Kind::root_bind);
  EXPECT_EQ(step_for(present, "/home/old")->kind, Kind::bind);
}

TEST(Plan, MountTargetIsResolvedInsideTheContainer) {
  const std::vector<Step> steps = plan(tree(plain), {.shares = {{"/var/run/job"}}});
  EXPECT_EQ(step_for(steps, "/run/job")->source, "/var/run/job");
  EXPECT_EQ(step_for(steps, "/run/dns/conf")->source, "/etc/resolv.conf");
  EXPECT_LT(position(steps, "/run"), position(steps, "/run/job"));
  EXPECT_EQ(step_for(steps, "/etc/resolv.conf"), nullptr);
}

TEST(Plan, HomeExistsAndNeverHidesAShare) {
  struct Row {
    const char* rule;
    std::string home;
    std::vector<Share> shares;
    bool is_made;
  };
  const Row rows[] = {
      {"missing inside: an empty one", "/home/ana", {}, true},
      {"a share may lie in it", "/home/ana", {{"/home/ana/work"}}, true},
      {"it may lie in a share", "/home/ana", {{"/home"}}, false},
      {"the root file system has it", "/home/old", {}, false},
      {"none", "", {}, false},
      {"relative", "home", {}, false},
      {"the root", "/", {}, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const std::vector<Step> steps = plan(tree(plain), {.shares = row.shares, .scratch = {row.home}});
    const bool is_made = std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
      return step.kind == Kind::tmpfs && step.target == row.home;
    });
    EXPECT_EQ(is_made, row.is_made);
    for (const Share& share : row.shares)
      EXPECT_TRUE(!is_made || position(steps, row.home) < position(steps, share.path));
  }
}

TEST(Resolve, FollowsLinksAsInsideTheContainer) {
  const ReadFolder read_folder =
      tree({{"/", {link("a", "b/c"), link("b", "/d"), link("loop", "loop"), folder("d")}},
            {"/d", {link("up", "../../../x"), folder("c")}}});
  EXPECT_EQ(resolve(read_folder, "/a/file"), "/d/c/file");
  EXPECT_EQ(resolve(read_folder, "/d/up/y"), "/x/y") << "no way out of the root";
  EXPECT_EQ(resolve(read_folder, "/loop/x"), "/loop/x") << "ends";
  EXPECT_EQ(resolve(read_folder, "//d/./c/"), "/d/c");
}

TEST(WithUser, AddsALineOnlyWhereTheIdHasNone) {
  const std::string passwd = "root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/home/ana:/bin/sh";
  EXPECT_EQ(with_user(passwd, 0, 0, "root", "/root"), passwd);
  EXPECT_EQ(with_user(passwd, 1000, 5, "bo", "/b"), passwd);
  EXPECT_EQ(with_user(passwd, 100, 5, "bo", "/b"), passwd + "\nbo:x:100:5::/b:/bin/sh\n");
  EXPECT_EQ(with_user(passwd, 100, 5, "ana", "/b"), passwd + "\nuser100:x:100:5::/b:/bin/sh\n");
  EXPECT_EQ(with_user("", 0, 0, "", ""), "root:x:0:0::/:/bin/sh\n");
}

}  // namespace
}  // namespace slipway::container
