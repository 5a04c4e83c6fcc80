// A node's answers to questions about files: the first byte names the kind, JSON or data follow.
#include "target.h"
#include "wire/files.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view answer = fuzz::text(data, size);
  fuzz::check_explained(wire::parse_file_bytes(answer));
  const auto files = wire::parse_file_list(answer);
  fuzz::check_explained(files);
  if (files)
    for (const FolderEntry& file : files->entries)
      (void)wire::format_file(file.name, file.kind, file.size, file.modified_at);
  fuzz::check_explained(wire::parse_file_size(answer));
  return 0;
}
