#pragma once
// The last turn that the service reported as saved, kept in the node's folder: a service whose
// database is older than that has lost turns, and is refused (control/nodes.cpp).
//
// Written over in place and not synced: a kill loses nothing of it, and after a power cut it is older, never
// newer.
#include <string>

#include "base/file.h"
#include "domain/protocol.h"

namespace slipway::agent {

class SeenTurn {
 public:
  explicit SeenTurn(std::string path);

  void note(const ToAgent& message);
  const SavedTurn& saved() const { return saved_; }

 private:
  void write() const;

  std::string path_;
  Fd file_;
  SavedTurn saved_;
};

}  // namespace slipway::agent
