#include "apps/sealing_key.h"

#include <cstdlib>
#include <cstring>

#include "base/file.h"

namespace {

using namespace slipway;

constexpr const char* variable = "SLIPWAY_SECRET_KEY";
constexpr std::string_view check_text = "slipway", check_purpose = "check of the key";

std::string take_variable() {
  char* value = std::getenv(variable);
  if (!value) return {};
  std::string taken = value;
  std::memset(value, 0, taken.size());  // /proc/PID/environ is what it was at the start
  ::unsetenv(variable);
  return taken;
}

// What was sealed at an earlier start has to be opened now.
Result<void> check(const Sealer& sealer, const std::string& file) {
  const Result<std::string> sealed = read_file(file);
  if (!sealed && sealed.error().code != ErrorCode::not_found) return fail(sealed.error());
  if (sealed && !sealer.unseal(*sealed, check_purpose))
    return fail(
        ErrorCode::conflict, "the secrets of this data folder are sealed with another key",
        "give that one as well, before the new one: several lines of the passphrase file, several keys of "
        "SLIPWAY_SECRET_KEY separated by commas, or the file secret.key");
  if (sealed && sealer.is_current(*sealed)) return {};
  return write_file_durably(file, sealer.seal(check_text, check_purpose), 0600);
}

}  // namespace

Result<Sealer> open_sealer(const std::string& data, const cli::UpOptions& options) {
  const std::string file = data + "/secret.key";
  SealingKeys keys{file, take_variable(), {}, data + "/secret.salt"};
  if (!options.passphrase_file.empty()) {
    auto text = read_file(options.passphrase_file);
    if (!text) return fail(text.error());
    keys.passphrases = std::move(*text);
    if (keys.passphrases.find_first_not_of('\n') == std::string::npos)
      return fail(ErrorCode::invalid, options.passphrase_file + " holds no passphrase", "write one into it");
  }
  // With a key from elsewhere there is none to make: the last one given is the new one.
  if (options.new_secret_key && keys.given.empty() && keys.passphrases.empty()) {
    if (auto made = Sealer::open(file); !made) return fail(made.error());
    if (auto rotated = Sealer::rotate(file); !rotated) return fail(rotated.error());
  }
  auto sealer = Sealer::open(keys);
  if (!sealer) return sealer;
  if (auto checked = check(*sealer, data + "/secret.check"); !checked) return fail(checked.error());
  return sealer;
}
