// The table of keys says what the reader reads, and the files made from it are those in docs. With
// SLIPWAY_WRITE=1 the test writes them.
#include "wire/job_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "wire/job_file.h"

namespace slipway::wire {
namespace {

std::string sorted_keys(const JobMap& map) {
  std::vector<std::string_view> names;
  for (const JobKey& key : map.keys) names.push_back(key.name);
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

TEST(JobKeys, AreThoseTheReaderAsksFor) {
  struct Row {
    const char* map;
    const char* file;  // with a key that nothing is like
  };
  const Row rows[] = {
      {"job", "qqqqqqqq: 1"},
      {"task", "tasks: [{name: a, command: x, qqqqqqqq: 1}]"},
      {"resources", "tasks: [{name: a, command: x, resources: {qqqqqqqq: 1}}]"},
      {"nodes", "tasks: [{name: a, command: x, nodes: {max: 1, qqqqqqqq: 1}}]"},
      {"role", "tasks: [{name: a, roles: {w: {command: x, qqqqqqqq: 1}}}]"},
      {"container", "tasks: [{name: a, command: x, container: {image: x, qqqqqqqq: 1}}]"},
      {"secret", "tasks: [{name: a, command: x, secrets: {K: {from: x, qqqqqqqq: 1}}}]"},
      {"prepare", "tasks: [{name: a, command: x, prepare: {qqqqqqqq: 1}}]"},
      {"mount", "tasks: [{name: a, command: x, mounts: [{at: x, shared: true, qqqqqqqq: 1}]}]"},
  };
  ASSERT_EQ(std::size(rows), job_maps().size());
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    SCOPED_TRACE(rows[i].map);
    const JobMap& map = job_maps()[i];
    EXPECT_EQ(map.name, rows[i].map);
    const auto file = parse_job_file(rows[i].file, "job.yaml");
    ASSERT_FALSE(file);
    const std::string mark = "the keys here are ";
    ASSERT_TRUE(file.error().hint.starts_with(mark)) << file.error().what << " / " << file.error().hint;
    EXPECT_EQ(sorted_keys(map), file.error().hint.substr(mark.size()))
        << "keep the table in src/wire/job_keys.cpp in step with the reader";
  }
}

TEST(JobKeys, NestedMapsExist) {
  for (const JobMap& map : job_maps())
    for (const JobKey& key : map.keys) {
      EXPECT_FALSE(key.about.empty()) << key.name;
      if (key.inside.empty()) continue;
      EXPECT_TRUE(std::any_of(job_maps().begin(), job_maps().end(), [&](const JobMap& each) {
        return each.name == key.inside;
      })) << key.inside;
    }
}

TEST(JobKeys, TheFilesInDocsAreMadeFromThem) {
  const std::pair<std::string, std::string> files[] = {
      {SLIPWAY_SOURCE "/docs/schemas/job.json", job_schema()},
      {SLIPWAY_SOURCE "/docs/guide/job-file.md", job_reference()}};
  for (const auto& [path, made] : files) {
    if (std::getenv("SLIPWAY_WRITE") != nullptr) {
      ASSERT_TRUE(write_file_durably(path, made, 0644));
    }
    EXPECT_EQ(read_file(path).value_or(""), made)
        << path
        << ": make it anew with SLIPWAY_WRITE=1 build/release/src/wire/slipway_wire_test "
           "--gtest_filter='JobKeys*'";
  }
}

}  // namespace
}  // namespace slipway::wire
