#include "api/masker.h"

#include <gtest/gtest.h>

#include "api/masked_source.h"

namespace slipway::api {
namespace {

std::string masked(const Masker& masker, std::string text) {
  masker.mask(text);
  return text;
}

TEST(Masker, ReplacesEveryByteOfAValueAndNothingElse) {
  const Masker masker({"hunter2", "line one\nline two\n", "abc", "nter2-x"});
  struct Row {
    const char* text;
    const char* shown;
  };
  for (const Row& row : {
           Row{"password=hunter2\n", "password=*******\n"},
           Row{"hunter2hunter2 hunter", "************** ******"},
           Row{"Hunter2 hunte2\n", "Hunter2 hunte2\n"},
           Row{"(line one\nline two)", "(********\n********)"},
           Row{"hunter2-x.", "*********."},
           Row{"abc", "abc"},
           Row{"", ""},
       })
    EXPECT_EQ(masked(masker, row.text), row.shown) << row.text;
}

TEST(Masker, TakesTheBeginningOfAValueAtTheEndForOne) {
  const Masker masker({"correct horse"});
  EXPECT_EQ(masked(masker, "it is correct h"), "it is *********");
  EXPECT_EQ(masked(masker, "it is corr"), "it is ****");
  EXPECT_EQ(masked(masker, "it is cor"), "it is cor") << "too little to be sure";
}

class Text final : public FileSource {
 public:
  std::string content;
  void read(const std::string&, std::uint64_t offset, std::size_t length, Bytes done) override {
    done(offset >= content.size() ? std::string() : content.substr(offset, length));
  }
  void size(const std::string&, std::function<void(Result<std::uint64_t>)> done) override {
    done(content.size());
  }
  void list(const std::string&, const std::string&, std::size_t, Page done) override { done(FilePage()); }
  std::shared_ptr<void> watch(const std::string&, std::uint64_t, std::function<void()>) override {
    return nullptr;
  }
  Result<Fd> open_here(const std::string&) override { return fail(ErrorCode::denied, "the file itself"); }
};

std::string read_in_pieces(FileSource& source, const std::string& path, std::size_t piece) {
  std::string all;
  for (bool is_over = false; !is_over;)
    source.read(path, all.size(), piece, [&](Result<std::string> bytes) {
      is_over = !bytes || bytes->empty();
      if (bytes) all += *bytes;
    });
  return all;
}

TEST(MaskedSource, MasksAcrossTheBordersOfPieces) {
  auto text = std::make_shared<Text>();
  text->content = "begin hunter2, hunter2\nhunter2 end\n";
  const auto source = with_masked(text, Masker({"hunter2"}));
  for (std::size_t piece = 1; piece <= text->content.size(); ++piece)
    EXPECT_EQ(read_in_pieces(*source, "stdout.txt", piece), "begin *******, *******\n******* end\n") << piece;
}

TEST(MaskedSource, MasksStreamsHoweverTheyAreCalledAndNoOtherFile) {
  auto text = std::make_shared<Text>();
  text->content = "hunter2";
  const auto source = with_masked(text, Masker({"hunter2"}));
  for (const char* path :
       {"stdout.txt", "stderr-1.txt", "./stdout.txt", "wd/../stdout.txt", "//stdout-prepare.txt"}) {
    EXPECT_EQ(read_in_pieces(*source, path, 100), "*******") << path;
    EXPECT_TRUE(source->open_here(path)) << "nobody is given the file itself";
  }
  EXPECT_EQ(read_in_pieces(*source, "outputs/model", 100), "hunter2");
  EXPECT_EQ(read_in_pieces(*source, "outputs/stdout.txt", 100), "hunter2");
}

}  // namespace
}  // namespace slipway::api
