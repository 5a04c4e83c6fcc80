#pragma once

namespace slipway {

// Gives back the clean pages of the program and its libraries that starting up has touched; those still
// needed come back from the page cache by themselves. For processes that run for weeks and do little, of
// which a machine may have many.
void release_startup_pages();

}  // namespace slipway
