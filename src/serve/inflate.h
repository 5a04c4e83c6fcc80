#pragma once
// Bodies sent with Content-Encoding: gzip.
#include <string>
#include <string_view>

#include "serve/failure.h"

namespace slipway::serve {

// RESOURCE_EXHAUSTED when more than `size_max` bytes come out.
Answer<std::string> inflate_gzip(std::string_view compressed, std::size_t size_max);

}  // namespace slipway::serve
