// What a blob store answers, the address of a container, names of blobs, and the notes of a sync.
#include "blob/address.h"
#include "blob/names.h"
#include "blob/state.h"
#include "blob/xml.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text(data, size);
  const auto page = blob::parse_blob_page(bytes);
  fuzz::check_explained(page);
  if (page)
    for (const blob::BlobInfo& info : page->blobs) SLIPWAY_CHECK(!info.name.empty());
  static_cast<void>(blob::parse_store_error(bytes));
  const auto address = blob::parse_container_address(bytes);
  fuzz::check_explained(address);
  if (address) SLIPWAY_CHECK(!address->account.empty() && address->path.starts_with('/'));
  const auto state = blob::parse_state(bytes);
  fuzz::check_explained(state);
  if (state) fuzz::check_round_trip(*state, blob::format_state, blob::parse_state);
  if (!blob::trouble_with_name(bytes)) {
    SLIPWAY_CHECK(bytes.front() != '/' && bytes.find("//") == std::string_view::npos);
    SLIPWAY_CHECK(net::percent_decode(blob::encode_path(bytes)) == bytes);
  }
  return 0;
}
