#pragma once
// Questions about files to a node's agent, its answers, and lists of files for the API.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace slipway::wire {

struct ListedFile {
  std::string name;
  std::string kind;
  std::uint64_t size = 0;
  TimePoint modified_at{};
};

std::string format_read_question(const std::string& path, std::uint64_t offset, std::size_t length,
                                 bool wait);
std::string format_list_question(const std::string& path);
// Answers begin with a byte for their kind: 0 data, 1 JSON, 2 an error.
Result<std::string> parse_file_bytes(std::string_view answer);
Result<std::vector<ListedFile>> parse_file_list(std::string_view answer);

std::string format_file(const std::string& path, std::string_view kind, std::uint64_t size,
                        TimePoint modified_at);

}  // namespace slipway::wire
