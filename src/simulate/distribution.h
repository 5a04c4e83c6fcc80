#pragma once
// Random numbers that depend on what they are for, not on who asked before: the same task takes as long under
// one policy as under another, so that two of them can be compared.
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/random.h"
#include "domain/simulation.h"

namespace slipway::simulate {

double draw(const Distribution& distribution, Random& random);  // seconds

// A seed made of several numbers, each of which changes all of it.
std::uint64_t mixed(std::initializer_list<std::uint64_t> parts);
std::uint64_t hashed(std::string_view text);

}  // namespace slipway::simulate
