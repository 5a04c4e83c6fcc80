#pragma once
// Docker as the third engine: its containers are not our children but a daemon's, and so have to end with us.
#include <string>
#include <vector>

#include "container/image.h"

namespace slipway::container {

struct DockerFacts {
  unsigned uid = 0;
  unsigned gid = 0;
  unsigned long files_max = 1024;
};

// The command line of `docker run`. The container's first process ends everything in it when its input ends:
// the input is a pipe whose other end only the client holds, so that a client that is killed takes the
// container with it. For that the image needs /bin/sh.
std::vector<std::string> docker_command(const std::string& program, const ImageRun& run,
                                        const DockerFacts& facts);

// Whether the program is installed and its daemon can be spoken to; asks the file system only.
bool has_docker(const Environment& environment);

// Makes standard input such a pipe. The program that this process becomes inherits the other end.
Result<void> tie_input_to_lifetime();

}  // namespace slipway::container
