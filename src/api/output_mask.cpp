#include "api/output_mask.h"

#include <algorithm>

namespace slipway::api {

Result<Masker> OutputMask::of(control::ReadStore& store, const JobRecord& job, const TaskSpec& spec) const {
  std::vector<std::string> values;
  if (!sealer_ || !spec.has_secrets()) return Masker({});
  // What cannot be opened was not given to a process either.
  const auto add = [&](const std::string& sealed, const std::string& purpose) {
    if (auto value = sealer_->unseal(sealed, purpose)) values.push_back(std::move(*value));
  };
  for (const auto& [variable, sealed] : spec.secrets) add(sealed, variable);
  if (!spec.secret_refs.empty()) {
    const auto secrets = store.secrets(job.workspace);
    if (!secrets) return fail(secrets.error());
    for (const SecretRecord& secret : *secrets) {
      const bool is_its = secret.key.user.empty() || secret.key.user == job.submitted_by;
      if (!is_its || std::none_of(spec.secret_refs.begin(), spec.secret_refs.end(),
                                  [&](const auto& ref) { return ref.second.from == secret.key.name; }))
        continue;
      add(secret.sealed, secret_purpose(secret.key));
      for (const std::string& earlier : secret.earlier) add(earlier, secret_purpose(secret.key));
    }
  }
  return Masker(std::move(values));
}

Result<void> OutputMask::apply(control::ReadStore& store, const JobRecord& job, const TaskSpec& spec,
                               std::string& lines) const {
  if (lines.empty()) return {};
  return of(store, job, spec).map([&](const Masker& masker) { masker.mask(lines); });
}

}  // namespace slipway::api
