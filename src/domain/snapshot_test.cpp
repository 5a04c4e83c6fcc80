#include "domain/snapshot.h"

#include <gtest/gtest.h>

namespace slipway {
namespace {

using namespace std::string_literals;

SnapshotEntry file(std::string path) {
  return {std::move(path), SnapshotKind::file, false, std::string(64, 'a'), 1, ""};
}
SnapshotEntry folder(std::string path) { return {std::move(path), SnapshotKind::folder, false, "", 0, ""}; }
SnapshotEntry link(std::string path, std::string target) {
  return {std::move(path), SnapshotKind::link, false, "", 0, std::move(target)};
}

std::string error_of(const Snapshot& snapshot) {
  const Result<void> valid = validate(snapshot);
  return valid ? "none" : valid.error().what;
}

TEST(Snapshot, LinksStayInside) {
  struct Row {
    const char* rule;
    Snapshot snapshot;
    std::string error;
  };
  const Row rows[] = {
      {"to a file", {{file("f"), link("l", "f")}}, ""},
      {"to the folder itself", {{link("a/l", "..")}}, ""},
      {"dangling, inside", {{link("l", "nowhere/x/../y")}}, ""},
      {"absolute", {{link("l", "/etc")}}, "the link 'l' leads out of the folder, to '/etc'"},
      {"upwards", {{link("a/l", "../../x")}}, "the link 'a/l' leads out of the folder, to '../../x'"},
      {"down, then too far up",
       {{link("l", "a/../..")}},
       "the link 'l' leads out of the folder, to 'a/../..'"},
      {"out and in again", {{link("l", "../wd/f")}}, "the link 'l' leads out of the folder, to '../wd/f'"},
      {"to nothing", {{link("l", "")}}, "the link 'l' leads out of the folder, to ''"},
      {"through a link, inside", {{folder("a/b"), link("a/b/d", "../.."), link("l", "a/b/d/a")}}, ""},
      {"through a link, whose parent is not the one by letters",
       {{folder("a/b"), link("a/b/d", "../.."), link("l", "a/b/d/..")}},
       "the link 'l' leads out of the folder, to 'a/b/d/..', through the link 'a/b/d'"},
      {"through a link that sorts after it",
       {{link("l", "z/d/.."), link("z/d", "..")}},
       "the link 'l' leads out of the folder, to 'z/d/..', through the link 'z/d'"},
      {"through links to links",
       {{link("a/b/d", "../../m"), link("l", "a/b/d/.."), link("m", "n"), link("n", ".")}},
       "the link 'l' leads out of the folder, to 'a/b/d/..', through the link 'a/b/d'"},
      {"through a link to what is not there yet",
       {{link("a/b/d", "../../nowhere"), link("l", "a/b/d/../..")}},
       "the link 'l' leads out of the folder, to 'a/b/d/../..', through the link 'a/b/d'"},
      {"up by letters, but down in truth", {{link("d", "a/b/c"), link("l", "d/../..")}}, ""},
      {"the wrong link is named, not the one that leads to it",
       {{link("a", "b"), link("b", "..")}},
       "the link 'b' leads out of the folder, to '..'"},
      {"to itself",
       {{link("l", "l")}},
       "the link 'l' to 'l' leads in a circle or through more than 40 links"},
      {"to each other",
       {{link("a", "b/x"), link("b", "a/y")}},
       "the link 'b' to 'a/y' leads in a circle or through more than 40 links"},
      // The system sees only what is before the zero byte.
      {"not what it seems", {{link("l", "..\0x"s)}}, "the link 'l' has a target that no link can have"},
      {"too long", {{link("l", std::string(4096, 'x'))}}, "the link 'l' has a target that no link can have"},
      {"too long together",
       {{link("k", std::string(4000, 'x')), link("l", "k/" + std::string(200, 'y'))}},
       "the link 'l' has a target that no link can have"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_EQ(error_of(row.snapshot), row.error.empty() ? "none" : "the snapshot is refused: " + row.error);
  }
}

// As many as the system follows; each is followed once, however many lead through it.
TEST(Snapshot, LinksMayFormChainsOfFortyAndNoMore) {
  const auto chain = [](int count) {
    Snapshot snapshot;
    for (int i = 10; i < 10 + count; ++i)
      snapshot.entries.push_back(link(std::to_string(i), i == 10 ? "." : std::to_string(i - 1)));
    return snapshot;
  };
  EXPECT_EQ(error_of(chain(40)), "none");
  EXPECT_EQ(error_of(chain(41)),
            "the snapshot is refused: the link '50' to '49' leads in a circle or through more than 40 links");
  Snapshot twice;  // 2^60 steps for whoever follows every link anew
  for (int i = 10; i < 70; ++i) {
    const std::string before = std::to_string(i - 1);
    twice.entries.push_back(link(std::to_string(i), i == 10 ? "." : before + "/" + before));
  }
  EXPECT_NE(error_of(twice), "none");
}

TEST(Snapshot, PathBelowALinkOrAFileIsRefused) {
  struct Row {
    const char* rule;
    Snapshot snapshot;
    std::string error;
  };
  const Row rows[] = {
      {"a file", {{folder("in"), link("x", "in"), file("x/f")}}, "'x/f' lies below 'x', which is no folder"},
      // '-' sorts before '/'.
      {"others between",
       {{link("x", "."), file("x-y"), file("x/a/f")}},
       "'x/a/f' lies below 'x', which is no folder"},
      {"a link", {{link("x", "."), link("x/l", ".")}}, "'x/l' lies below 'x', which is no folder"},
      {"below a file", {{file("x"), file("x/f")}}, "'x/f' lies below 'x', which is no folder"},
      {"the link after", {{file("x/f"), link("x", ".")}}, "'x' is listed twice or out of order"},
      {"both", {{folder("x"), link("x", ".")}}, "'x' is listed twice or out of order"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_EQ(error_of(row.snapshot), "the snapshot is refused: " + row.error);
  }
}

}  // namespace
}  // namespace slipway
