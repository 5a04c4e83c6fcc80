#include "agent/machine_use.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace slipway::agent {
namespace {

constexpr Duration read_every = 30s;
constexpr double sector = 512;  // whatever the disk has, the kernel counts in these

// vda, nvme0n1; not vda1, nvme0n1p1, loop0, dm-0, ram0.
bool is_whole_disk(std::string_view name) {
  for (const char* other : {"loop", "ram", "dm-", "md", "sr", "zram"})
    if (name.starts_with(other)) return false;
  if (name.starts_with("nvme") || name.starts_with("mmcblk"))
    return name.find('p', name.starts_with("nvme") ? 4 : 6) == std::string::npos;
  return !name.empty() && (name.back() < '0' || name.back() > '9');
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(' '); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(' ', end);
  }
  return words;
}

template <class Each>
void each_line(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    each(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

double number(std::string_view word) {  // 0 for what is none
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return static_cast<double>(value);
}

std::string text_of(const char* path) { return read_file(path).value_or(""); }

}  // namespace

MachineCounters parse_counters(const std::string& stat, const std::string& meminfo,
                               const std::string& diskstats, const std::string& net_dev) {
  MachineCounters counters;
  const std::vector<std::string_view> cpu = words_of(std::string_view(stat).substr(0, stat.find('\n')));
  for (std::size_t field = 1; field < std::min<std::size_t>(9, cpu.size()); ++field) {
    const double ticks = number(cpu[field]);  // user nice system idle iowait irq softirq steal
    counters.cpu_all += ticks;
    if (field != 4 && field != 5) counters.cpu_busy += ticks;
  }
  const auto memory = [&](std::string_view name) {
    const std::size_t at = meminfo.find(name);
    return at == std::string::npos ? 0 : std::strtod(meminfo.c_str() + at + name.size(), nullptr);
  };
  counters.memory_used = std::max(0.0, memory("MemTotal:") - memory("MemAvailable:")) * 1024;
  each_line(diskstats, [&](std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() < 10 || !is_whole_disk(words[2])) return;
    counters.disk_reads += number(words[3]);
    counters.disk_read += number(words[5]) * sector;
    counters.disk_writes += number(words[7]);
    counters.disk_written += number(words[9]) * sector;
  });
  each_line(net_dev, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::vector<std::string_view> name = words_of(line.substr(0, colon));
    const std::vector<std::string_view> words = words_of(line.substr(colon + 1));
    if (name.size() != 1 || name[0] == "lo" || words.size() < 9) return;
    counters.network_in += number(words[0]);
    counters.network_out += number(words[8]);
  });
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

}  // namespace slipway::agent
