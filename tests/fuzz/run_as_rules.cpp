// The rules of --run-as-file, one a line.
#include <vector>

#include "domain/run_as.h"
#include "target.h"

using namespace slipway;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> rules(1);
  for (const char c : fuzz::text(data, size))
    if (c == '\n')
      rules.emplace_back();
    else
      rules.back() += c;
  const auto parsed = RunAsRules::parse(rules);
  fuzz::check_explained(parsed);
  if (!parsed) return 0;
  for (const std::string& rule : rules)
    if (const auto found = parsed->find("default", rule.substr(0, rule.find('='))); found && *found)
      SLIPWAY_CHECK((*found)->uid != 0 && (*found)->gid != 0);  // never root
  return 0;
}
