#pragma once
// The files of an attempt with those of its task's checkpoints, which lie elsewhere, as the folder
// `checkpoint` of it. Without any there is no such folder.
#include <memory>

#include "api/file_source.h"

namespace slipway::api {

std::shared_ptr<FileSource> with_checkpoints(std::shared_ptr<FileSource> attempt,
                                             std::shared_ptr<FileSource> checkpoints);

}  // namespace slipway::api
