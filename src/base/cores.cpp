#include "base/cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace slipway {

CoreList usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CoreList cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;  // more cores than a cpu_set_t has bits
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

std::string format_cores(const CoreList& cores) { return fmt::format("{}", fmt::join(cores, ",")); }

CoreList parse_cores(std::string_view text) {
  CoreList cores;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    int core = 0;
    if (std::from_chars(text.data(), text.data() + end, core).ec == std::errc{}) cores.push_back(core);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return cores;
}

CorePool::CorePool(CoreList cores) {
  for (const int core : cores) cores_.push_back({core});
}

CorePool::Core* CorePool::find(int number) {
  const auto found =
      std::find_if(cores_.begin(), cores_.end(), [&](const Core& core) { return core.number == number; });
  return found == cores_.end() ? nullptr : &*found;
}

CoreList CorePool::take(std::uint32_t millicores) {
  if (millicores < 1000) return {};
  const std::size_t count = std::min<std::size_t>((std::size_t{millicores} + 999) / 1000, cores_.size());
  std::vector<const Core*> order;
  for (const Core& core : cores_) order.push_back(&core);
  std::stable_sort(order.begin(), order.end(), [](const Core* a, const Core* b) {
    return std::tie(a->holders, a->first_of) < std::tie(b->holders, b->first_of);
  });
  CoreList taken;
  for (std::size_t i = 0; i < count; ++i) taken.push_back(order[i]->number);
  hold(taken);
  return taken;
}

void CorePool::hold(const CoreList& taken) {
  for (const int number : taken)
    if (Core* core = find(number)) {
      ++core->holders;
      core->first_of += number == taken.front();
    }
}

void CorePool::give_back(const CoreList& taken) {
  for (const int number : taken)
    if (Core* core = find(number)) {
      --core->holders;
      core->first_of -= number == taken.front();
    }
}

}  // namespace slipway
