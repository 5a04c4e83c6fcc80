#include "api/masked_source.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace slipway::api {
namespace {

// The path without `./` and `//`, and without steps up: another way to write the name of a stream.
std::string plain(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::string part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part == ".." && !parts.empty())
      parts.pop_back();
    else if (!part.empty() && part != ".")
      parts.push_back(std::move(part));
  }
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : "/") + part;
  return joined;
}

class WithMasked final : public FileSource {
 public:
  WithMasked(std::shared_ptr<FileSource> files, Masker masker)
      : files_(std::move(files)), masker_(std::make_shared<const Masker>(std::move(masker))) {}

  void read(const std::string& path, std::uint64_t offset, std::size_t length, Bytes done) override {
    if (!is_masked(path)) return files_->read(path, offset, length, std::move(done));
    const std::size_t before = std::min<std::uint64_t>(offset, masker_->context());
    files_->read(path, offset - before, before + length + masker_->context(),
                 [masker = masker_, before, length, done = std::move(done)](Result<std::string> bytes) {
                   if (!bytes) return done(std::move(bytes));
                   masker->mask(*bytes);
                   done(bytes->size() <= before ? std::string() : bytes->substr(before, length));
                 });
  }
  // Whoever is given the file itself would see what is in it.
  Result<Fd> open_here(const std::string& path) override {
    return is_masked(path) ? Result<Fd>(Fd()) : files_->open_here(path);
  }
  void size(const std::string& path, std::function<void(Result<std::uint64_t>)> done) override {
    files_->size(path, std::move(done));
  }
  void list(const std::string& path, const std::string& after, std::size_t limit, Page done) override {
    files_->list(path, after, limit, std::move(done));
  }
  std::shared_ptr<void> watch(const std::string& path, std::uint64_t offset,
                              std::function<void()> changed) override {
    return files_->watch(path, offset, std::move(changed));
  }

 private:
  static bool is_masked(const std::string& path) {
    const std::string name = plain(path);
    return (name.starts_with("stdout") || name.starts_with("stderr")) && name.find('/') == std::string::npos;
  }

  std::shared_ptr<FileSource> files_;
  std::shared_ptr<const Masker> masker_;
};

}  // namespace

std::shared_ptr<FileSource> with_masked(std::shared_ptr<FileSource> files, Masker masker) {
  return std::make_shared<WithMasked>(std::move(files), std::move(masker));
}

}  // namespace slipway::api
