#include <gtest/gtest.h>

#include "base/encoding.h"
#include "blob/address.h"
#include "blob/container.h"
#include "blob/signing.h"

namespace slipway::blob {
namespace {

const std::string key = "the key of the lab";

TEST(Signing, AListOfAnAccountInTheHost) {
  const Signable request{
      .method = "GET",
      .path = "/data",
      .query = {{"restype", "container"}, {"comp", "list"}, {"marker", "a b/c"}},
      .headers = {{"x-ms-version", "2021-08-06"}, {"X-Ms-Date", "Mon, 02 Mar 2026 10:00:00 GMT"}}};
  EXPECT_EQ(string_to_sign(request, "lab"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\n"
            "x-ms-date:Mon, 02 Mar 2026 10:00:00 GMT\n"
            "x-ms-version:2021-08-06\n"
            "/lab/data\ncomp:list\nmarker:a b/c\nrestype:container");
  EXPECT_EQ(shared_key(request, "lab", key), "SharedKey lab:Bsspr4TSRDvXtlwB/ZOqBFIcwfq0xeZmq45q/3IPU0w=");
}

TEST(Signing, AnUploadToAnAccountInThePath) {
  const Signable request{.method = "PUT",
                         .path = "/devstoreaccount1/data/a%20file",
                         .headers = {{"Content-Type", "application/octet-stream"},
                                     {"Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="},
                                     {"If-Match", "\"0x1\""},
                                     {"x-ms-blob-type", "BlockBlob"}},
                         .body_size = 11};
  EXPECT_EQ(string_to_sign(request, "devstoreaccount1"),
            "PUT\n\n\n11\n1B2M2Y8AsgTpgAmY7PhCfg==\napplication/octet-stream\n\n\n\"0x1\"\n\n\n\n"
            "x-ms-blob-type:BlockBlob\n"
            "/devstoreaccount1/devstoreaccount1/data/a%20file");
  EXPECT_EQ(shared_key(request, "devstoreaccount1", key),
            "SharedKey devstoreaccount1:YJc2iyohF2/mtFojojU8Vk0lsKSe91NGkBL+gJWbaEM=");
}

TEST(Signing, ABodyOfNothingHasNoLength) {
  const Signable request{.method = "PUT", .path = "/c", .query = {{"restype", "container"}}};
  EXPECT_EQ(string_to_sign(request, "a"), "PUT\n\n\n\n\n\n\n\n\n\n\n\n/a/c\nrestype:container");
}

TEST(Signing, Dates) {
  EXPECT_EQ(format_http_date(parse_time("2026-03-02T10:00:00Z").value()), "Mon, 02 Mar 2026 10:00:00 GMT");
  EXPECT_EQ(format_http_date(parse_time("1994-11-06T08:49:37Z").value()), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(Address, IsParsed) {
  const auto in_host = parse_container_address("https://lab.blob.core.windows.net/data").value();
  EXPECT_EQ(in_host.account, "lab");
  EXPECT_EQ(in_host.path, "/data");
  EXPECT_TRUE(in_host.url.is_secure);
  EXPECT_EQ(in_host.name(), "https://lab.blob.core.windows.net/data");
  const auto in_path = parse_container_address("http://127.0.0.1:10000/devstoreaccount1/data/").value();
  EXPECT_EQ(in_path.account, "devstoreaccount1");
  EXPECT_EQ(in_path.path, "/devstoreaccount1/data");
  const auto sas =
      parse_container_address("https://lab.blob.core.windows.net/data?sv=2020&sig=a%2Bb%3D").value();
  EXPECT_EQ(sas.sas, (std::vector<std::pair<std::string, std::string>>{{"sv", "2020"}, {"sig", "a+b="}}));
}

TEST(Address, IsRefusedWithoutItsSecret) {
  for (const char* wrong :
       {"", "lab", "lab.blob.core.windows.net/data", "ftp://lab.blob.core.windows.net/data",
        "https://lab.blob.core.windows.net", "https://lab.blob.core.windows.net/data/more",
        "http://127.0.0.1:10000/data", "http://127.0.0.1:10000/a/b/c", "http://h/a/B_c",
        "https://lab.blob.core.windows.net/data?secret=1", "http://h/a/%zz", "http://.blob.h/data",
        "http://h/a/b?sig=%z"}) {
    const auto address = parse_container_address(wrong);
    ASSERT_FALSE(address) << wrong;
    EXPECT_EQ(address.error().what.find("secret"), std::string::npos);
  }
  EXPECT_FALSE(BlobContainer::open("https://lab.blob.core.windows.net/data", ""));
  EXPECT_FALSE(BlobContainer::open("https://lab.blob.core.windows.net/data", "no base64"));
  EXPECT_TRUE(BlobContainer::open("https://lab.blob.core.windows.net/data?sig=x", ""));
}

}  // namespace
}  // namespace slipway::blob
