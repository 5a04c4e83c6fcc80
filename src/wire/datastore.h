#pragma once
// Datastores and their files as the API's JSON.
#include <string>
#include <string_view>

#include "base/result.h"
#include "domain/records.h"

namespace slipway::wire {

// {"path"} or {"url", "key"} or {}; the key as the user gave it. An empty text is {}.
Result<DatastoreRecord> parse_datastore(std::string_view json);
std::string format(const DatastoreRecord& datastore);  // without the key
std::string format_stored_file(const std::string& name, std::string_view kind, std::uint64_t size,
                               TimePoint modified_at);

}  // namespace slipway::wire
