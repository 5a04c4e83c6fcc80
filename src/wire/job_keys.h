#pragma once
// Every key of a job file: what it takes and what it is for. The one table behind the JSON Schema that
// editors complete with (docs/schemas/job.json, /v1/schemas/job.json) and the reference page
// (docs/guide/job-file.md). What the reader (job_file.cpp) asks for and what stands here are compared by a
// test.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace slipway::wire {

enum class KeyType : std::uint8_t {
  text,
  integer,
  number,
  boolean,
  size,      // 512MiB
  duration,  // 10m
  texts,     // a list of texts, or one
  text_map,  // names and texts
  command,   // a text for the shell, or a list of words
  word,      // one of some
  map,       // of the keys of `inside`
  list,      // a list of such maps
  named,     // a map of names to such maps
};

struct JobKey {
  std::string_view name;
  KeyType type = KeyType::text;
  std::string_view about;
  std::string_view otherwise = {};  // the default, as written; empty: none, or said in `about`
  double low = 0, high = 0;         // of numbers; both 0: any
  std::vector<std::string_view> words = {};
  std::string_view inside = {};  // the map that the value is, or whose keys its items have
  bool also_text = false;        // a map that can be a plain value as well: nodes: 4, prepare: COMMAND
  bool required = false;
};

struct JobMap {
  std::string_view name;   // job, task, resources …
  std::string_view where;  // how its keys are reached: tasks[].resources
  std::string_view about;
  std::vector<JobKey> keys;  // in the order of the reference page
};

const std::vector<JobMap>& job_maps();

std::string job_schema();     // JSON Schema 2020-12
std::string job_reference();  // Markdown

}  // namespace slipway::wire
