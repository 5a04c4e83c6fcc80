#include "control/spec_cache.h"

namespace slipway::control {
namespace {

constexpr std::size_t specs_max = 256;

}  // namespace

SpecCache::Spec SpecCache::find(JobId job, std::uint32_t group) {
  const auto found = by_key_.find({job, group});
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

SpecCache::Spec SpecCache::add(JobId job, std::uint32_t group, Spec spec) {
  entries_.emplace_front(Key{job, group}, spec);
  by_key_[{job, group}] = entries_.begin();
  if (entries_.size() > specs_max) {
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return spec;
}

Result<SpecCache::Spec> SpecCache::read(JobId job, std::uint32_t group) {
  auto stored = read_(job, group);
  if (!stored) return fail(stored.error());
  return add(job, group, std::make_shared<const TaskSpec>(std::move(*stored)));
}

}  // namespace slipway::control
