#pragma once
// How busy this machine is, from what the kernel counts: the samples that autoscale formulas ask for.
#include <optional>
#include <string>

#include "base/clock.h"
#include "domain/protocol.h"

namespace slipway::agent {

struct MachineCounters {  // as the kernel counts them, since the machine started
  double cpu_busy = 0, cpu_all = 0;
  double disk_read = 0, disk_written = 0, disk_reads = 0, disk_writes = 0;
  double network_in = 0, network_out = 0;
  double memory_used = 0;  // now
};
// From the texts of /proc/stat, /proc/meminfo, /proc/diskstats and /proc/net/dev. Loopback, parts of disks
// and disks made of others do not count.
MachineCounters parse_counters(const std::string& stat, const std::string& meminfo,
                               const std::string& diskstats, const std::string& net_dev);
// What happened between two readings.
MachineUse use_between(const MachineCounters& before, const MachineCounters& after, double disk_used);

class UseMeter {
 public:
  explicit UseMeter(std::string folder) : folder_(std::move(folder)) {}  // whose disk is looked at
  // Every few seconds something, else nothing: reading costs a little.
  std::optional<MachineUse> read(TimePoint now);

 private:
  std::string folder_;
  std::optional<MachineCounters> last_;
  TimePoint read_at_{};
};

}  // namespace slipway::agent
