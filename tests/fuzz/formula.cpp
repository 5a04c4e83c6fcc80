// Autoscale formulas, parsed and evaluated over a pool that was watched for ten minutes.
#include "formula/testing.h"
#include "target.h"

using namespace slipway;

namespace {

void check_place(const formula::FormulaError& error, std::string_view text) {
  SLIPWAY_CHECK(!error.message.empty());
  SLIPWAY_CHECK(error.at.line >= 1 && error.at.column >= 1);
  std::size_t begin = 0;
  for (std::uint32_t line = 1; line < error.at.line; ++line) {
    begin = text.find('\n', begin) + 1;
    SLIPWAY_CHECK(begin != 0);
  }
  SLIPWAY_CHECK(error.at.column <= text.size() - begin + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const formula::SampledPool pool;
  const std::string_view text = fuzz::text(data, size);
  const auto parsed = formula::parse(text);
  if (!parsed) {
    SLIPWAY_CHECK(parsed.error().code != formula::FormulaErrorCode::insufficient_samples);
    check_place(parsed.error(), text);
    return 0;
  }
  const formula::Outcome outcome = formula::evaluate(*parsed, pool.inputs);
  SLIPWAY_CHECK(outcome.targets.dedicated >= 0 && outcome.targets.low_priority >= 0);
  const std::string results = formula::format_results(outcome);
  SLIPWAY_CHECK(formula::format_results(formula::evaluate(*parsed, pool.inputs)) == results);
  if (outcome.error) {
    check_place(*outcome.error, text);
    SLIPWAY_CHECK(outcome.targets == pool.inputs.targets && outcome.variables.empty());
  }
  // What comes out for the pool is itself a formula, and a fixed point.
  formula::Outcome settings = outcome;
  settings.variables.clear();
  settings.error.reset();
  const std::string line = formula::format_results(settings);
  const auto again = formula::parse(line);
  SLIPWAY_CHECK(again.has_value());
  SLIPWAY_CHECK(formula::format_results(formula::evaluate(*again, pool.inputs)) == line);
  return 0;
}
