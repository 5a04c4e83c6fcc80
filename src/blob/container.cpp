#include "blob/container.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <thread>

#include "base/encoding.h"
#include "base/file.h"
#include "base/md5.h"
#include "blob/address.h"
#include "blob/names.h"
#include "blob/signing.h"

namespace slipway::blob {
namespace {

constexpr const char* store_version = "2021-08-06";  // of the store's interface
constexpr std::chrono::milliseconds pauses[] = {250ms, 1s, 4s};
constexpr std::uint64_t slowest_rate = 64 << 10;  // bytes a second; what is slower has stopped
constexpr std::uint64_t blocks_max = 50'000;      // of one blob
constexpr std::size_t list_pages_max = 20'000;    // 100 million blobs

using Query = std::vector<std::pair<std::string, std::string>>;

struct Ask {
  std::string method{};
  std::string blob{};  // empty: the container itself
  Query query{};
  net::Client::Options options{};
  std::uint64_t body_size = 0;
  std::uint64_t answer_size = 0;             // about, for the deadline
  std::function<Result<void>()> on_start{};  // before every try
};

bool may_pass(int status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

}  // namespace

struct BlobContainer::Impl {
  ContainerAddress address;
  std::string key;  // bytes
  std::string name;
  SystemClock clock{};
  net::Client client;

  Impl(ContainerAddress where, std::string with_key)
      : address(std::move(where)), key(std::move(with_key)), name(address.name()), client(address.url) {}

  Result<net::Response> send(Ask ask);  // any answer
  Result<net::Response> ask(Ask ask);   // 2xx, or an error in words
  Error refusal(const Ask& ask, const net::Response& answer) const;
  Result<BlobInfo> put_whole(const std::string& blob, int file, std::uint64_t size);
  Result<BlobInfo> put_blocks(const std::string& blob, int file, std::uint64_t size);
};

Result<net::Response> BlobContainer::Impl::send(Ask ask) {
  Signable request{.method = ask.method, .path = address.path, .query = ask.query, .headers = {}};
  if (!ask.blob.empty()) request.path += "/" + encode_path(ask.blob);
  request.body_size = ask.body_size;
  std::string target = request.path;
  Query whole = ask.query;
  if (key.empty()) whole.insert(whole.end(), address.sas.begin(), address.sas.end());
  for (const auto& [word, value] : whole)
    target += fmt::format("{}{}={}", target.find('?') == std::string::npos ? '?' : '&', word,
                          net::percent_encode(value));
  const net::Headers headers = ask.options.headers;
  ask.options.deadline = std::chrono::seconds(60 + (ask.body_size + ask.answer_size) / slowest_rate);
  for (std::size_t attempt = 0;; ++attempt) {
    if (ask.on_start)
      if (auto ready = ask.on_start(); !ready) return fail(std::move(ready.error()));
    request.headers = headers;
    request.headers.emplace_back("x-ms-date", format_http_date(clock.now()));
    request.headers.emplace_back("x-ms-version", store_version);
    ask.options.headers = request.headers;
    if (!key.empty())
      ask.options.headers.emplace_back("Authorization", shared_key(request, address.account, key));
    auto answer = client.request(ask.method, target, ask.options);
    const bool is_passing = answer ? may_pass(answer->status) : answer.error().code == ErrorCode::unavailable;
    if (!is_passing || attempt >= std::size(pauses)) return answer;
    std::this_thread::sleep_for(pauses[attempt]);
  }
}

Error BlobContainer::Impl::refusal(const Ask& ask, const net::Response& answer) const {
  const StoreError store_error = parse_store_error(answer.body);
  const std::string what = ask.blob.empty() ? name : fmt::format("{} of {}", ask.blob, name);
  const std::string words = store_error.code.empty()
                                ? fmt::format("status {}", answer.status)
                                : fmt::format("{}: {}", store_error.code, store_error.message);
  Error error{ErrorCode::unavailable, fmt::format("{} {} failed: {}", ask.method, what, words), ""};
  if (answer.status == 401 || answer.status == 403) {
    error.code = ErrorCode::denied;
    error.what =
        fmt::format("{} refuses {}: {}", name,
                    key.empty() ? "the SAS" : fmt::format("the key of account {}", address.account), words);
    error.hint = key.empty() ? "ask for a SAS that is valid now and may read, write, delete and list"
                             : "compare the key with the account's, and this machine's clock with the time";
  } else if (answer.status == 404) {
    error.code = ErrorCode::not_found;
    error.what = fmt::format("there is no {} {}: {}", ask.blob.empty() ? "container" : "blob", what, words);
    error.hint = ask.blob.empty() ? "compare its name with the account's containers; a push makes it" : "";
  } else if (answer.status == 409) {
    error.code = ErrorCode::conflict;
  }
  return error;
}

Result<net::Response> BlobContainer::Impl::ask(Ask ask) {
  auto answer = send(ask);
  if (!answer) {
    if (answer.error().hint.empty())
      answer.error().hint = "see whether the store runs and this machine can reach it";
    return answer;
  }
  if (answer->status < 200 || answer->status > 299) return fail(refusal(ask, *answer));
  return answer;
}

BlobContainer::BlobContainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BlobContainer::BlobContainer(BlobContainer&&) noexcept = default;
BlobContainer& BlobContainer::operator=(BlobContainer&&) noexcept = default;
BlobContainer::~BlobContainer() = default;

Result<BlobContainer> BlobContainer::open(const std::string& url, const std::string& key) {
  auto address = parse_container_address(url);
  if (!address) return fail(std::move(address.error()));
  if (key.empty() && address->sas.empty())
    return fail(ErrorCode::invalid, fmt::format("neither a key nor a SAS is given for {}", address->name()),
                "give the account's key, or an address that ends with a SAS");
  auto bytes = parse_base64(key);
  if (!bytes)
    return fail(ErrorCode::invalid,
                fmt::format("the key for {} cannot be used: it is not base64", address->name()),
                "copy the whole key of the account, with the '=' at its end");
  return BlobContainer(std::make_unique<Impl>(std::move(*address), std::move(*bytes)));
}

BlobContainer BlobContainer::another() const {
  return BlobContainer(std::make_unique<Impl>(impl_->address, impl_->key));
}

const std::string& BlobContainer::name() const { return impl_->name; }

Result<std::vector<BlobInfo>> BlobContainer::list() {
  std::vector<BlobInfo> blobs;
  std::string marker;
  for (std::size_t page = 0; page < list_pages_max; ++page) {
    Query query = {{"restype", "container"}, {"comp", "list"}};
    if (!marker.empty()) query.emplace_back("marker", marker);
    const auto answer = impl_->ask({.method = "GET", .query = query});
    if (!answer) return fail(answer.error());
    auto read = parse_blob_page(answer->body);
    if (!read) return fail(read.error().code, fmt::format("{}: {}", name(), read.error().what));
    std::move(read->blobs.begin(), read->blobs.end(), std::back_inserter(blobs));
    if (read->next_marker.empty()) return blobs;
    if (read->next_marker == marker) break;
    marker = std::move(read->next_marker);
  }
  return fail(ErrorCode::internal, fmt::format("the list of {} never ends", name()));
}

Result<void> BlobContainer::create() {
  Ask ask{.method = "PUT", .query = {{"restype", "container"}}};
  const auto answer = impl_->send(ask);
  if (!answer) return fail(answer.error());
  const bool is_there =
      answer->status == 409 && parse_store_error(answer->body).code == "ContainerAlreadyExists";
  if (is_there || (answer->status >= 200 && answer->status < 300)) return {};
  return fail(impl_->refusal(ask, *answer));
}

Result<BlobInfo> BlobContainer::download(const BlobInfo& listed, int file) {
  const std::string& blob = listed.name;
  BlobInfo got{.name = blob, .etag = {}};
  Md5 hash;
  Result<void> written;
  Ask ask{.method = "GET", .blob = blob};
  ask.answer_size = listed.size;
  ask.on_start = [&]() -> Result<void> {
    got.size = 0;
    hash = Md5();
    if (::ftruncate(file, 0) != 0 || ::lseek(file, 0, SEEK_SET) != 0)
      return fail(system_error("cannot write " + blob, errno));
    return {};
  };
  ask.options.on_piece = [&](std::string_view piece) {
    hash.add(piece);
    got.size += piece.size();
    written = write_all(file, piece, blob);
    return written.has_value();
  };
  const auto answer = impl_->ask(ask);
  if (!written) return fail(written.error());
  if (!answer) return fail(answer.error());
  got.md5 = format_base64(hash.finish());
  got.etag = unquoted(net::find_header(answer->headers, "ETag").value_or(""));
  const auto promised = net::find_header(answer->headers, "Content-MD5");
  if (promised && *promised != got.md5)
    return fail(ErrorCode::unavailable,
                fmt::format("{} of {} arrived damaged: its MD5 differs", blob, name()),
                "try again; if it stays so, upload the file anew");
  return got;
}

Result<BlobInfo> BlobContainer::upload(const std::string& blob, int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return fail(system_error("cannot read " + blob, errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  return size <= single_put_max ? impl_->put_whole(blob, file, size) : impl_->put_blocks(blob, file, size);
}

Result<BlobInfo> BlobContainer::Impl::put_whole(const std::string& blob, int file, std::uint64_t size) {
  auto md5 = md5_of_file(file);
  if (!md5) return fail(std::move(md5.error()));
  Ask put{.method = "PUT", .blob = blob, .body_size = size};
  put.options.body_file = fmt::format("/proc/self/fd/{}", file);
  put.options.headers = {
      {"x-ms-blob-type", "BlockBlob"}, {"Content-Type", "application/octet-stream"}, {"Content-MD5", *md5}};
  const auto answer = ask(put);
  if (!answer) return fail(answer.error());
  return BlobInfo{blob, unquoted(net::find_header(answer->headers, "ETag").value_or("")), size, *md5};
}

Result<BlobInfo> BlobContainer::Impl::put_blocks(const std::string& blob, int file, std::uint64_t size) {
  Md5 whole;
  std::string list = "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>";
  std::string block;
  const std::uint64_t at_most = std::max(block_size, size / blocks_max + 1);
  for (std::uint64_t offset = 0; offset < size; offset += block.size()) {
    block.resize(static_cast<std::size_t>(std::min(at_most, size - offset)));
    const ssize_t got = ::pread(file, block.data(), block.size(), static_cast<off_t>(offset));
    if (got < 0) return fail(system_error("cannot read " + blob, errno));
    if (got == 0) return fail(ErrorCode::conflict, blob + " became shorter while it was being sent");
    block.resize(static_cast<std::size_t>(got));
    whole.add(block);
    Md5 hash;
    hash.add(block);
    const std::string id = format_base64(fmt::format("{:020}", offset));  // all ids have one length
    Ask put{.method = "PUT",
            .blob = blob,
            .query = {{"comp", "block"}, {"blockid", id}},
            .body_size = block.size()};
    put.options.body = block;
    put.options.headers = {{"Content-MD5", format_base64(hash.finish())}};
    if (const auto answer = ask(std::move(put)); !answer) return fail(answer.error());
    list += "<Latest>" + id + "</Latest>";
  }
  const std::string md5 = format_base64(whole.finish());
  Ask put{.method = "PUT", .blob = blob, .query = {{"comp", "blocklist"}}};
  put.options.body = list + "</BlockList>";
  put.body_size = put.options.body.size();
  put.options.headers = {{"Content-Type", "application/xml"},
                         {"x-ms-blob-content-type", "application/octet-stream"},
                         {"x-ms-blob-content-md5", md5}};
  const auto answer = ask(std::move(put));
  if (!answer) return fail(answer.error());
  return BlobInfo{blob, unquoted(net::find_header(answer->headers, "ETag").value_or("")), size, md5};
}

Result<bool> BlobContainer::remove(const std::string& blob, const std::string& etag) {
  Ask ask{.method = "DELETE", .blob = blob};
  ask.options.headers = {{"If-Match", "\"" + etag + "\""}};
  const auto answer = impl_->send(ask);
  if (!answer) return fail(answer.error());
  if (answer->status == 404 || answer->status == 412) return false;
  if (answer->status < 200 || answer->status > 299) return fail(impl_->refusal(ask, *answer));
  return true;
}

Result<std::string> md5_of_file(int file) {
  Md5 hash;
  std::string buffer(256 * 1024, '\0');
  for (off_t offset = 0;;) {
    const ssize_t got = ::pread(file, buffer.data(), buffer.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("cannot read a file", errno));
    if (got == 0) return format_base64(hash.finish());
    hash.add(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
    offset += got;
  }
}

}  // namespace slipway::blob
