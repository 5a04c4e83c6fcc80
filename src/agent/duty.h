#pragma once
// What there is to do for a piece of work besides running it, and how that is recorded.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/seal.h"
#include "domain/protocol.h"

namespace slipway::agent {

struct Duty {
  struct Process {
    std::uint32_t rank = 0;
    std::string stdout_name, stderr_name;  // in the folder
    std::vector<std::uint16_t> listens;
    friend bool operator==(const Process&, const Process&) = default;
  };
  std::string folder;       // absolute
  std::string checkpoints;  // likewise; empty: none
  Duration stall{0};        // see StartOrder::stall_timeout
  Duration lease{0};
  std::optional<RunAs> run_as{};
  Duration wall_time_max{0};  // see StartOrder
  Duration stop_grace{0};
  View view;  // without its folders and files
  std::vector<Process> processes;
  friend bool operator==(const Duty&, const Duty&) = default;
};

Duty duty_of(const StartOrder& order, const std::string& data);
Duty duty_of(const PrepareOrder& order, const std::string& data);  // until it starts: its mounts
// Places whose content is sent back to a container.
std::vector<const View::Mount*> pushed_mounts(const Duty& duty);
bool has_mount_commands(const Duty& duty);

// Asked only where there are addresses and keys of containers, which are sealed.
using GetSealer = std::function<Result<Sealer>()>;
Result<std::string> format(const Duty& duty, const GetSealer& sealer);
Result<Duty> parse_duty(std::string_view content, const GetSealer& sealer);

}  // namespace slipway::agent
