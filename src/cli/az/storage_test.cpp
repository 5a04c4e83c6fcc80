// Shares, containers and datastores, against a service made of a table of answers.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "cli/testing.h"

namespace slipway::cli {
namespace {

class Storage : public ::testing::Test {
 protected:
  Storage() {
    for (const char* name : {"AZURE_STORAGE_ACCOUNT", "AZURE_BATCHAI_STORAGE_ACCOUNT"}) ::unsetenv(name);
    for (const char* store : {"default.file.data", "lab.blob.c"}) {
      const std::string path = std::string("/v1/datastores/") + store;
      service.on("PUT " + path, 200, R"({"name":"x"})");
      service.on("PUT " + path + "/content", 200, R"({"name":"x"})");
      service.on("POST " + path + "/folders", 204, "");
      service.on("DELETE " + path + "/content", 204, "");
      service.on("DELETE " + path, 204, "");
    }
  }
  FakeService service;
  TemporaryFolder folder;
};

TEST_F(Storage, SharesAreDatastores) {
  EXPECT_EQ(
      service.run({"storage", "share", "create", "--name", "data", "--query", "created", "-o", "tsv"}).out,
      "True\n");
  service.on("GET /v1/datastores/default.file.data", 200, R"({"name":"default.file.data","path":null})");
  EXPECT_EQ(service
                .run({"storage", "share", "create", "-n", "data", "--quota", "5", "--query", "created", "-o",
                      "tsv"})
                .out,
            "False\n");
  EXPECT_EQ(service.run({"storage", "share", "exists", "-n", "data", "--query", "exists"}).out, "true\n");
  EXPECT_EQ(service.run({"storage", "share", "exists", "-n", "none", "--query", "exists"}).out, "false\n");
  EXPECT_EQ(service.run({"storage", "share", "show", "-n", "none"}).code, 3);
  service.on(
      "GET /v1/datastores", 200,
      R"({"items":[{"name":"default.file.data"},{"name":"lab.file.x"},{"name":"default.blob.y"}],"next":null})");
  EXPECT_EQ(service.run({"storage", "share", "list", "-o", "quiet"}).out, "data\n");
  EXPECT_EQ(service.run({"storage", "container", "list", "-o", "quiet"}).out, "y\n");
  EXPECT_EQ(service
                .run({"storage", "share", "list", "-o", "quiet", "--connection-string",
                      "DefaultEndpointsProtocol=https;AccountName=lab;AccountKey=k"})
                .out,
            "x\n");
  EXPECT_EQ(service.run({"storage", "share", "delete", "-n", "data", "-y"}).code, 0);
  EXPECT_EQ(service.seen("DELETE").size(), 1u);
}

TEST_F(Storage, AnAccountIsANameWithAKey) {
  const auto run = [this](std::vector<std::string> words) {
    words.insert(words.end(), {"--data", folder.path("data")});  // where accounts are kept
    return service.run(words);
  };
  EXPECT_EQ(run({"storage", "account", "show", "-n", "batchaisample"}).code, 3);
  const Ran made = run({"storage", "account", "create", "-n", "batchaisample", "--sku", "Standard_LRS", "-g",
                        "ml", "-l", "eastus", "--query", "provisioningState", "-o", "tsv"});
  EXPECT_EQ(made.out, "Succeeded\n") << made.err;
  const auto key = [&](const char* which) {
    return run({"storage", "account", "keys", "list", "--account-name", "batchaisample", "-g", "ml",
                "--query", which, "-o", "tsv"})
        .out;
  };
  const std::string first = key("[0].value");
  EXPECT_GT(first.size(), 80u);
  EXPECT_NE(first, key("[1].value"));
  EXPECT_EQ(run({"storage", "account", "create", "-n", "batchaisample"}).code, 0);
  EXPECT_EQ(key("[0].value"), first) << "it was there already";
  const std::string text = run({"storage", "account", "show-connection-string", "-n", "batchaisample",
                                "--query", "connectionString", "-o", "tsv"})
                               .out;
  EXPECT_EQ(text,
            "DefaultEndpointsProtocol=https;EndpointSuffix=core.windows.net;AccountName=batchaisample;"
            "AccountKey=" +
                first);
  service.on("GET /v1/datastores", 200,
             R"({"items":[{"name":"batchaisample.file.x"},{"name":"other.file.y"}],"next":null})");
  EXPECT_EQ(run({"storage", "share", "list", "-o", "quiet", "--connection-string", text}).out, "x\n");
  EXPECT_EQ(run({"storage", "account", "keys", "renew", "-n", "batchaisample"}).code, 0);
  EXPECT_NE(key("[0].value"), first);
  service.on("DELETE /v1/datastores/batchaisample.file.x", 204, "");
  EXPECT_EQ(run({"storage", "account", "delete", "-n", "batchaisample"}).code, 1) << "it asks";
  EXPECT_EQ(run({"storage", "account", "delete", "-n", "batchaisample", "-y"}).code, 0);
  EXPECT_EQ(run({"storage", "account", "list", "-o", "quiet"}).out, "");
  EXPECT_EQ(run({"storage", "account", "create", "-n", "No_Good"}).code, 2);
}

TEST_F(Storage, SendsAndFetchesFiles) {
  folder.write("train-images-idx3-ubyte.gz", "bytes");
  folder.write("tree/a.png", "A");
  folder.write("tree/sub/b.png", "B");
  folder.write("tree/c.txt", "C");
  const std::string content = "PUT /v1/datastores/default.file.data/content";
  EXPECT_EQ(service.run({"storage", "directory", "create", "--share-name", "data", "--name", "mnist"}).code,
            0);
  EXPECT_EQ(service.seen("POST").front(), "POST /v1/datastores/default.file.data/folders?path=mnist");
  EXPECT_EQ(service
                .run({"storage", "file", "upload", "--share-name", "data", "--source",
                      folder.path("train-images-idx3-ubyte.gz"), "--path", "mnist"})
                .code,
            0);
  EXPECT_EQ(service.seen(content).back(), content + "?path=mnist%2Ftrain-images-idx3-ubyte.gz");
  EXPECT_EQ(service.body_of(content), "bytes");
  EXPECT_EQ(service
                .run({"storage", "file", "upload", "-s", "data", "--source", folder.path("tree/c.txt"), "-p",
                      "d/e.txt"})
                .code,
            0);
  EXPECT_EQ(service.seen(content).back(), content + "?path=d%2Fe.txt");

  const std::string blobs = "PUT /v1/datastores/lab.blob.c/content";
  const Ran batch =
      service.run({"storage", "blob", "upload-batch", "-d", "c", "-s", folder.path("tree"), "--pattern",
                   "*.png", "--account-name", "lab", "--query", "sort(@)", "-o", "tsv"});
  EXPECT_EQ(batch.out, "a.png\nsub/b.png\n") << batch.err;
  EXPECT_EQ(service.seen(blobs).size(), 2u);

  service.on("GET /v1/datastores/lab.blob.c/files", [](const std::shared_ptr<net::Exchange>& exchange) {
    const bool below = exchange->request().parameter("path") == "sub";
    exchange->send(json_response(
        200,
        below
            ? R"({"items":[{"name":"b.png","kind":"file","size":1,"modified_at":"t"}],"next":null})"
            : R"({"items":[{"name":"a.png","kind":"file","size":1},{"name":"sub","kind":"folder"}],"next":null})"));
  });
  service.on("GET /v1/datastores/lab.blob.c/content", [](const std::shared_ptr<net::Exchange>& exchange) {
    exchange->send({200, {}, "content of " + exchange->request().parameter("path").value_or("")});
  });
  EXPECT_EQ(service.run({"storage", "blob", "list", "-c", "c", "--account-name", "lab", "-o", "quiet"}).out,
            "a.png\nsub/b.png\n");
  EXPECT_EQ(service
                .run({"storage", "blob", "download-batch", "-s", "c", "-d", folder.path("got"),
                      "--account-name", "lab", "-o", "none"})
                .code,
            0);
  EXPECT_EQ(folder.read("got/sub/b.png"), "content of sub/b.png");
  EXPECT_EQ(service
                .run({"storage", "blob", "download", "-c", "c", "-n", "sub/b.png", "-f", folder.path(),
                      "--storage-account-name", "lab"})
                .code,
            0);
  EXPECT_EQ(folder.read("b.png"), "content of sub/b.png");
  EXPECT_EQ(service
                .run({"storage", "blob", "exists", "-c", "c", "-n", "sub/b.png", "--account-name", "lab",
                      "--query", "exists"})
                .out,
            "true\n");
  EXPECT_EQ(service.run({"storage", "file", "delete", "-s", "data", "-p", "d/e.txt"}).code, 0);
  EXPECT_EQ(service.run({"storage", "file", "upload", "-s", "data", "--source", "/nonexistent"}).code, 1);
  EXPECT_EQ(service.run({"storage", "file", "upload", "-s", "data"}).code, 2);
}

TEST_F(Storage, PathsOutsideTheFolderAreRefused) {
  service.on("GET /v1/datastores/lab.blob.c/files", 200,
             R"({"items":[{"name":"../evil","kind":"file","size":1}],"next":null})");
  const Ran ran = service.run(
      {"storage", "blob", "download-batch", "-s", "c", "-d", folder.path("got"), "--account-name", "lab"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("outside of the folder"), std::string::npos) << ran.err;
}

TEST_F(Storage, DatastoreCommands) {
  service.on("PUT /v1/datastores/faces", 200, R"({"name":"faces","path":"/shared/faces"})");
  EXPECT_EQ(service.run({"datastore", "create", "faces", "--path", "/shared/faces"}).code, 0);
  EXPECT_EQ(service.body_of("PUT /v1/datastores/faces"), R"({"path":"/shared/faces"})");
  folder.write("key", "secret\n");
  EXPECT_EQ(service
                .run({"datastore", "create", "faces", "--url", "https://lab.blob.core.windows.net/c",
                      "--key-file", folder.path("key")})
                .code,
            0);
  EXPECT_EQ(service.body_of("PUT /v1/datastores/faces"),
            R"({"url":"https://lab.blob.core.windows.net/c","key":"secret"})");
  EXPECT_EQ(service.run({"datastore", "create", "faces", "--path", "/a", "--url", "u"}).code, 2);
  EXPECT_EQ(service.run({"datastore", "create", "faces", "--key-file", "k"}).code, 2);

  service.on("PUT /v1/datastores/faces/content", 200, "{}");
  folder.write("tree/a", "A");
  EXPECT_EQ(service.run({"datastore", "upload", "faces", folder.path("tree"), "train"}).code, 0);
  EXPECT_EQ(service.seen("PUT /v1/datastores/faces/content").back(),
            "PUT /v1/datastores/faces/content?path=train%2Fa");
  EXPECT_EQ(service.run({"datastore", "upload", "faces", folder.path("tree/a")}).code, 0);
  EXPECT_EQ(service.seen("PUT /v1/datastores/faces/content").back(),
            "PUT /v1/datastores/faces/content?path=a");
  service.on("GET /v1/datastores/faces/files", 200,
             R"({"items":[{"name":"a","kind":"file","size":1}],"next":null})");
  service.on("GET /v1/datastores/faces/content", 200, "content");
  EXPECT_EQ(service.run({"datastore", "ls", "faces", "train", "-o", "quiet"}).out, "a\n");
  EXPECT_EQ(service.run({"datastore", "download", "faces", "train/a", folder.path("got")}).code, 0);
  EXPECT_EQ(folder.read("got"), "content");
  EXPECT_EQ(service.run({"datastore", "download", "faces", "train/", folder.path("all")}).code, 0);
  EXPECT_EQ(folder.read("all/a"), "content");
  service.on("DELETE /v1/datastores/faces", 204, "");
  EXPECT_EQ(service.run({"datastore", "delete", "faces", "-y"}).code, 0);
}

}  // namespace
}  // namespace slipway::cli
