#pragma once
// The files of the web UI (web/dist), put into the program when it is built by tools/embed-web. Their names
// hold a hash of their content, but for index.html.
#include <span>
#include <string_view>

namespace slipway::api {

struct UiFile {
  std::string_view name;   // index-Bx3f9a2c.js
  std::string_view type;   // of its content
  std::string_view bytes;  // compressed by gzip
};
std::span<const UiFile> ui_files();
std::string_view ui_page();  // index.html, as it is

}  // namespace slipway::api
