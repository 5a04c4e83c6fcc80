#pragma once
// The files of an attempt, with secret values masked in its output streams.
#include <memory>

#include "api/file_source.h"
#include "api/masker.h"

namespace slipway::api {

// Those are the files stdout*.txt and stderr*.txt in the attempt's folder itself.
std::shared_ptr<FileSource> with_masked(std::shared_ptr<FileSource> files, Masker masker);

}  // namespace slipway::api
