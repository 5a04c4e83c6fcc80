#include "train/exchange/plan.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace slipway::train {
namespace {

constexpr std::uint64_t floats_max = std::uint64_t{1} << 33;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

class Fields {
 public:
  explicit Fields(std::string_view text) {
    for (const std::string_view line : lines_of(text)) {
      const std::size_t space = std::min(line.find(' '), line.size());
      fields_[line.substr(0, space)] = line.substr(std::min(space + 1, line.size()));
    }
  }
  template <class T>
  bool number(std::string_view key, T& to, std::uint64_t max = ~std::uint64_t{0}) const {
    std::uint64_t value = 0;
    const std::string_view text = word(key);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty() || value > max) return false;
    to = static_cast<T>(value);
    return true;
  }
  bool real(std::string_view key, float& to) const {
    const std::string_view text = word(key);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
  }
  std::string_view word(std::string_view key) const {
    const auto found = fields_.find(key);
    return found == fields_.end() ? std::string_view() : found->second;
  }

 private:
  std::map<std::string_view, std::string_view> fields_;
};

}  // namespace

std::string format_plan(const Plan& plan) {
  const OptimizerSpec& o = plan.optimizer;
  std::string text = fmt::format(
      "model {}\ndataset {}\nseed {}\nlayout {}\nfloats {}\nworkers {}\nservers {}\nbatch {}\nmode "
      "{}\nstaleness {}\n"
      "backups {}\nlost {}\noptimizer {}\nschedule {}\nrate {}\ndecay {}\nbeta1 {}\nbeta2 {}\nepsilon "
      "{}\nsteps {}\n",
      plan.model, plan.dataset, plan.seed, plan.layout, plan.floats, plan.workers, plan.servers, plan.batch,
      static_cast<int>(plan.mode), plan.staleness, plan.backups, static_cast<int>(plan.lost),
      static_cast<int>(o.kind), static_cast<int>(o.schedule), o.rate, o.decay, o.beta1, o.beta2, o.epsilon,
      o.steps_total);
  text += "statistics";
  for (const Range& range : plan.statistics) text += fmt::format(" {}-{}", range.begin, range.end);
  return text + "\n";
}

Result<Plan> parse_plan(std::string_view text) {
  const Fields fields(text);
  Plan plan;
  plan.model = fields.word("model");
  plan.dataset = fields.word("dataset");
  OptimizerSpec& o = plan.optimizer;
  const bool sound =
      fields.number("seed", plan.seed) && fields.number("layout", plan.layout) &&
      fields.number("floats", plan.floats, floats_max) && fields.number("workers", plan.workers, 65'536) &&
      fields.number("servers", plan.servers, 65'536) && fields.number("batch", plan.batch, 1U << 24) &&
      fields.number("mode", plan.mode, 2) && fields.number("staleness", plan.staleness, 1U << 30) &&
      fields.number("backups", plan.backups, 65'536) && fields.number("lost", plan.lost, 1) &&
      fields.number("optimizer", o.kind, 3) && fields.number("schedule", o.schedule, 2) &&
      fields.real("rate", o.rate) && fields.real("decay", o.decay) && fields.real("beta1", o.beta1) &&
      fields.real("beta2", o.beta2) && fields.real("epsilon", o.epsilon) &&
      fields.number("steps", o.steps_total) && plan.floats > 0 && plan.workers > 0 && plan.servers > 0 &&
      plan.batch > 0 && plan.backups < plan.workers;
  if (!sound) return fail(ErrorCode::invalid, "it sent a plan that makes no sense");
  std::string_view rest = fields.word("statistics");
  while (!rest.empty()) {
    Range range;
    const auto [dash, first] = std::from_chars(rest.data(), rest.data() + rest.size(), range.begin);
    if (first != std::errc() || dash == rest.data() + rest.size() || *dash != '-')
      return fail(ErrorCode::invalid, "it sent a plan whose statistics make no sense");
    const auto [end, second] = std::from_chars(dash + 1, rest.data() + rest.size(), range.end);
    if (second != std::errc() || range.begin > range.end || range.end > plan.floats)
      return fail(ErrorCode::invalid, "it sent a plan whose statistics make no sense");
    plan.statistics.push_back(range);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.empty()) rest.remove_prefix(1);
  }
  return plan;
}

std::string difference(const std::string& mine, const std::string& theirs) {
  const auto ours = lines_of(mine), others = lines_of(theirs);
  for (std::size_t i = 0; i < std::max(ours.size(), others.size()); ++i) {
    const std::string_view a = i < ours.size() ? ours[i] : "(nothing)",
                           b = i < others.size() ? others[i] : "(nothing)";
    if (a != b) return fmt::format("`{}`, not `{}`", a, b);
  }
  return "nothing";
}

Range server_slice(std::uint64_t floats, std::uint32_t servers, std::uint32_t index) {
  const std::uint64_t blocks = (floats + 15) / 16;
  const auto cut = [&](std::uint64_t i) { return std::min(floats, blocks * i / servers * 16); };
  return {cut(index), index + 1 == servers ? floats : cut(index + 1)};
}

}  // namespace slipway::train
