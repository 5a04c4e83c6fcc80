#include "cli/client/ignore.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "cli/testing.h"

namespace slipway::cli {
namespace {

struct Row {
  const char* rule;
  const char* patterns;
  const char* path;  // a folder when it ends in '/'
  bool ignored;
};

// Every row is what git 2.39 does; AgreesWithGit asks the git of the machine again.
const Row rows[] = {
    {"a name matches anywhere", "*.pyc\n", "a/b/x.pyc", true},
    {"a name matches as a whole", "*.pyc\n", "x.pyc.txt", false},
    {"a comment is no pattern", "#x\n", "#x", false},
    {"an escaped hash is a pattern", "\\#x\n", "#x", true},
    {"an escaped mark is a pattern", "\\!x\n", "!x", true},
    {"the last pattern wins", "*.log\n!keep.log\n", "keep.log", false},
    {"taking back can be taken back", "*.log\n!keep.log\nkeep.log\n", "keep.log", true},
    {"a leading slash anchors", "/x\n", "x", true},
    {"an anchored name is not found deeper", "/x\n", "a/x", false},
    {"a slash in the middle anchors", "a/x\n", "a/x", true},
    {"and is not found deeper", "a/x\n", "b/a/x", false},
    {"a slash at the end does not anchor", "build/\n", "a/build/", true},
    {"but wants a folder", "build/\n", "build", false},
    {"without it files match too", "build\n", "build", true},
    {"a star stays within a part", "a/*.c\n", "a/b/x.c", false},
    {"a star matches within a part", "a/*.c\n", "a/x.c", true},
    {"a star matches nothing too", "a/*x\n", "a/x", true},
    {"a star matches a leading dot", "*x\n", ".x", true},
    {"two stars first: at any depth", "**/x\n", "a/b/x", true},
    {"two stars first: at no depth", "**/x\n", "x", true},
    {"two stars first, then a path", "**/a/x\n", "b/c/a/x", true},
    {"two stars last: everything below", "a/**\n", "a/b/x", true},
    {"two stars last: not the folder itself", "a/**\n", "a/", false},
    {"two stars between: no folder", "a/**/x\n", "a/x", true},
    {"two stars between: several", "a/**/x\n", "a/b/c/x", true},
    {"two stars between: whole parts", "a/**/x\n", "a/bx", false},
    {"two stars in a part are one", "a/b**x\n", "a/bcx", true},
    {"two stars in a part stay in it", "a/b**x\n", "a/b/x", false},
    {"three stars are two", "***/x\n", "a/x", true},
    {"two stars alone", "**\n", "a", true},
    {"two stars twice", "**/a/**/x\n", "p/a/q/r/x", true},
    {"a question mark is one character", "?.c\n", "x.c", true},
    {"and only one", "?.c\n", "xy.c", false},
    {"and no slash", "a?x\n", "a/x", false},
    {"a set", "[ab].c\n", "a.c", true},
    {"outside a set", "[ab].c\n", "c.c", false},
    {"a range", "v[0-9]\n", "v7", true},
    {"outside a range", "v[0-9]\n", "vx", false},
    {"a set turned around by !", "v[!0-9]\n", "vx", true},
    {"a set turned around by ^", "v[^0-9]\n", "v7", false},
    {"a turned set matches no slash", "a[!b]x\n", "a/x", false},
    {"a bracket first in a set", "x[]]\n", "x]", true},
    {"a dash last in a set", "x[a-]\n", "x-", true},
    {"an escape in a set", "x[\\]]\n", "x]", true},
    {"a range of escapes", "x[\\a-\\c]\n", "xb", true},
    {"a named class", "x[[:digit:]]\n", "x3", true},
    {"outside a named class", "x[[:digit:]]\n", "xa", false},
    {"a named class among others", "x[_[:upper:]]\n", "x_", true},
    {"an unknown class matches nothing", "x[[:nope:]]\n", "xn", false},
    {"an open set matches nothing", "x[ab\n", "xa", false},
    {"an open set is not literal", "x[ab\n", "x[ab", false},
    {"a backslash at the end matches nothing", "x\\\n", "x", false},
    {"an escaped star is a star", "\\*\n", "*", true},
    {"and nothing else", "\\*\n", "x", false},
    {"spaces at the end do not count", "x   \n", "x", true},
    {"an escaped space counts", "x\\ \n", "x ", true},
    {"an escaped space counts among others", "x\\   \n", "x ", true},
    {"spaces inside count", "a b\n", "a b", true},
    {"a line may end in CR LF", "x\r\n", "x", true},
    {"the last line may lack its end", "x", "x", true},
    {"an empty line is no pattern", "\n\n", "x", false},
    {"a mark alone is no pattern", "!\n", "x", false},
    {"a slash alone is no pattern", "/\n", "x", false},
    {"a byte order mark is skipped", "\xef\xbb\xbfx\n", "x", true},
    {"case counts", "X\n", "x", false},
    {"a folder pattern with a path", "a/b/\n", "a/b/", true},
    {"anchored and folders only", "/b/\n", "b/", true},
    {"anchored and folders only, deeper", "/b/\n", "a/b/", false},
    {"UTF-8 names", "gr\xc3\xbc*\n", "gr\xc3\xbc\xc3\x9f", true},
    {"hostile stars end", "*a*a*a*a*a*a*a*a*a*a*b\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
};

bool ignored_by_us(const Row& row) {
  std::string path = row.path;
  const bool folder = path.ends_with('/');
  if (folder) path.pop_back();
  return IgnoreFile(row.patterns)
      .ignores(path, folder ? IgnoreFile::Kind::folder : IgnoreFile::Kind::file)
      .value_or(false);
}

TEST(IgnoreFile, MatchesAsGitDoes) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    EXPECT_EQ(ignored_by_us(row), row.ignored) << row.patterns << row.path;
  }
}

TEST(IgnoreFile, AgreesWithGit) {
  if (std::system("git --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const TemporaryFolder folder;
    const std::string in_folder = "cd '" + folder.path() + "' && ";
    ASSERT_EQ(std::system((in_folder + "git init -q . 2> /dev/null").c_str()), 0);
    folder.write(".gitignore", row.patterns);
    std::string path = row.path;
    if (path.ends_with('/')) {
      std::filesystem::create_directories(folder.path(path));
      path.pop_back();
    } else {
      folder.write(path, "");
    }
    const int status = std::system((in_folder + "git check-ignore -q -- '" + path + "'").c_str());
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    EXPECT_EQ(WEXITSTATUS(status) == 0, row.ignored) << row.patterns << row.path;
  }
}

TEST(IgnoreFile, UnmatchedPathsAreUndecided) {
  EXPECT_FALSE(IgnoreFile("*.log\n").ignores("x.txt", IgnoreFile::Kind::file).has_value());
}

}  // namespace
}  // namespace slipway::cli
