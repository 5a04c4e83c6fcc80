#pragma once
// Keeps long-lived small processes small.

namespace slipway::node {

// Lets go of code and constants that are in memory because starting up touched them (the dynamic linker alone
// reads most of the libraries' symbol tables). What is used again comes back from the page cache, a page
// fault each. Also returns freed heap memory to the system.
void release_unused_memory();

}  // namespace slipway::node
