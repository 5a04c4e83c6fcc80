#pragma once
// How far a transfer is: one line on stderr that is written over, on a terminal only.
#include <string>

#include "base/quantity.h"

namespace slipway::cli {

class Progress {
 public:
  // "sending code": what is done, before the figures.
  Progress(bool on, std::string what, std::size_t files, Bytes bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(Bytes bytes);  // of the file that is under way
  void file_done();

 private:
  void draw();

  bool on_, is_drawn_ = false;
  std::string what_;
  std::size_t files_, files_done_ = 0;
  Bytes bytes_, bytes_done_ = 0, bytes_drawn_ = 0;
};

}  // namespace slipway::cli
