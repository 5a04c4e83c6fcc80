#include "domain/work_key.h"

#include "base/overloaded.h"

namespace slipway {
namespace {

constexpr std::uint32_t preparation_bit = 1u << 31;
constexpr std::uint32_t push_bit = 1u << 30;

}  // namespace

const AttemptKey* attempt_of(const WorkKey& key) {
  if (const auto* attempt = std::get_if<AttemptKey>(&key)) return attempt;
  const auto* preparation = std::get_if<PreparationRun>(&key);
  return preparation ? &preparation->of : nullptr;
}

PushRun push_of(const WorkKey& work) {
  return std::visit(
      Overloaded{[](const PushRun& push) { return push; }, [](const auto& other) { return PushRun{other}; }},
      work);
}

WorkKey work_of(const PushRun& push) {
  return std::visit([](const auto& work) { return WorkKey(work); }, push.of);
}

AttemptKey pack(const WorkKey& key) {
  return std::visit(
      Overloaded{
          [](const AttemptKey& attempt) { return attempt; },
          [](const StartTaskRun& run) {
            return AttemptKey{{JobId{0}, static_cast<std::uint32_t>(run.node.value()), 0}, run.attempt};
          },
          [](const PreparationRun& run) {
            return AttemptKey{run.of.task, run.of.attempt | preparation_bit};
          },
          [](const PushRun& run) {
            AttemptKey of = pack(work_of(run));
            of.attempt |= push_bit;
            return of;
          },
      },
      key);
}

WorkKey unpack(const AttemptKey& packed) {
  if ((packed.attempt & push_bit) != 0) return push_of(unpack({packed.task, packed.attempt & ~push_bit}));
  if (packed.task.job == JobId{0}) return StartTaskRun{NodeId{packed.task.group}, packed.attempt};
  if ((packed.attempt & preparation_bit) != 0)
    return PreparationRun{{packed.task, packed.attempt & ~preparation_bit}};
  return packed;
}

std::string to_string(const WorkKey& key) { return to_string(pack(key)); }

std::optional<WorkKey> parse_work_key(std::string_view text) {
  const auto packed = parse_attempt_key(text);
  return packed ? std::optional(unpack(*packed)) : std::nullopt;
}

}  // namespace slipway
