#include "node/machine_use.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <sstream>

#include "base/file.h"

namespace slipway::node {
namespace {

constexpr Duration read_every{5'000'000};
constexpr double sector = 512;  // whatever the disk has, the kernel counts in these

// vda, nvme0n1; not vda1, nvme0n1p1, loop0, dm-0, ram0.
bool is_whole_disk(const std::string& name) {
  for (const char* other : {"loop", "ram", "dm-", "md", "sr", "zram"})
    if (name.starts_with(other)) return false;
  if (name.starts_with("nvme") || name.starts_with("mmcblk"))
    return name.find('p', name.starts_with("nvme") ? 4 : 6) == std::string::npos;
  return !name.empty() && (name.back() < '0' || name.back() > '9');
}

std::string text_of(const char* path) { return read_file(path).value_or(""); }

}  // namespace

MachineCounters parse_counters(const std::string& stat, const std::string& meminfo,
                               const std::string& diskstats, const std::string& net_dev) {
  MachineCounters counters;
  std::istringstream cpu(stat.substr(0, stat.find('\n')));
  std::string word;
  cpu >> word;
  double value = 0;
  for (int field = 0; field < 8 && cpu >> value; ++field) {  // user nice system idle iowait irq softirq steal
    counters.cpu_all += value;
    if (field != 3 && field != 4) counters.cpu_busy += value;
  }
  double total = 0, available = 0;
  for (std::istringstream lines(meminfo); lines >> word;) {
    if (word == "MemTotal:") lines >> total;
    if (word == "MemAvailable:") lines >> available;
  }
  counters.memory_used = std::max(0.0, total - available) * 1024;
  std::string line;
  for (std::istringstream lines(diskstats); std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string major, minor, name;
    double reads = 0, merged = 0, sectors_read = 0, reading = 0, writes = 0, merged_writes = 0,
           sectors_written = 0;
    if (!(fields >> major >> minor >> name >> reads >> merged >> sectors_read >> reading >> writes >>
          merged_writes >> sectors_written) ||
        !is_whole_disk(name))
      continue;
    counters.disk_reads += reads;
    counters.disk_read += sectors_read * sector;
    counters.disk_writes += writes;
    counters.disk_written += sectors_written * sector;
  }
  for (std::istringstream lines(net_dev); std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(' ');
    if (colon == std::string::npos || line.substr(begin, colon - begin) == "lo") continue;
    std::istringstream fields(line.substr(colon + 1));
    double received = 0, skipped = 0, sent = 0;
    fields >> received;
    for (int i = 0; i < 7; ++i) fields >> skipped;
    if (!(fields >> sent)) continue;
    counters.network_in += received;
    counters.network_out += sent;
  }
  return counters;
}

MachineUse use_between(const MachineCounters& before, const MachineCounters& after, double disk_used) {
  // Counters of a device that went can go back.
  const auto grown = [](double from, double to) { return std::max(0.0, to - from); };
  MachineUse use;
  const double all = grown(before.cpu_all, after.cpu_all);
  use.cpu = all > 0 ? std::min(1.0, grown(before.cpu_busy, after.cpu_busy) / all) : 0;
  use.memory = after.memory_used;
  use.disk = disk_used;
  use.disk_read = grown(before.disk_read, after.disk_read);
  use.disk_written = grown(before.disk_written, after.disk_written);
  use.disk_reads = grown(before.disk_reads, after.disk_reads);
  use.disk_writes = grown(before.disk_writes, after.disk_writes);
  use.network_in = grown(before.network_in, after.network_in);
  use.network_out = grown(before.network_out, after.network_out);
  return use;
}

std::optional<MachineUse> UseMeter::read(TimePoint now) {
  if (last_ && now < read_at_ + read_every) return std::nullopt;
  const MachineCounters counters = parse_counters(text_of("/proc/stat"), text_of("/proc/meminfo"),
                                                  text_of("/proc/diskstats"), text_of("/proc/net/dev"));
  struct statvfs disk {};
  const double used =
      ::statvfs(folder_.c_str(), &disk) == 0
          ? static_cast<double>(disk.f_blocks - disk.f_bfree) * static_cast<double>(disk.f_frsize)
          : 0;
  read_at_ = now;
  const std::optional<MachineCounters> before = std::exchange(last_, counters);
  if (!before) return std::nullopt;
  return use_between(*before, counters, used);
}

}  // namespace slipway::node
