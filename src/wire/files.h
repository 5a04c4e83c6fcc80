#pragma once
// Questions about files to a node's agent, its answers, and lists of files for the API.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/list_folder.h"
#include "base/result.h"

namespace slipway::wire {

std::string format_read_question(const std::string& folder, const std::string& path, std::uint64_t offset,
                                 std::size_t length, bool wait);
std::string format_list_question(const std::string& folder, const std::string& path, const std::string& after,
                                 std::size_t limit);
std::string format_size_question(const std::string& folder, const std::string& path);
// Answers begin with a byte for their kind: 0 data, 1 JSON, 2 an error.
Result<std::string> parse_file_bytes(std::string_view answer);
Result<FolderPage> parse_file_list(std::string_view answer);
Result<std::uint64_t> parse_file_size(std::string_view answer);
std::string format_file_list(const FolderPage& page);

std::string format_file(const std::string& path, std::string_view kind, std::uint64_t size,
                        TimePoint modified_at);

}  // namespace slipway::wire
