#include "cli/az/config_file.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>

#include "base/file.h"
#include "base/subprocess.h"
#include "wire/document.h"

namespace slipway::cli::az {
namespace {

constexpr const char* account_mark = "<AZURE_BATCHAI_STORAGE_ACCOUNT>";
constexpr const char* key_mark = "<AZURE_BATCHAI_STORAGE_KEY>";

// Keys of earlier versions that mean nothing now.
bool is_dropped(const std::string& key) {
  for (const char* old :
       {"$schema", "comment", "experimentName", "location", "toolType", "runElevated", "createNew"})
    if (key == old) return true;
  return false;
}

// Renames old keys of one object, and collects unknown ones.
void modernize(Value& value, const Value& fields, const std::string& path,
               std::vector<std::string>& unknown) {
  if (value.is_list()) {
    const Value inner = fields.items.empty() ? Value() : fields.items[0];
    for (std::size_t i = 0; i < value.items.size(); ++i)
      modernize(value.items[i], inner, fmt::format("{}[{}]", path, i), unknown);
    return;
  }
  if (!value.is_map()) return;
  Value out = Value::map();
  for (auto& [key, inner] : value.fields) {
    std::string name = key;
    if (name == "credentialsInfo") name = "credentials";
    if (name == "adminUserSSHPublicKey") name = "adminUserSshPublicKey";
    if (is_dropped(name) || (name == "type" && path.find("outputDirectories") != std::string::npos)) continue;
    if (name == "priority" && inner.is_number() && path.empty()) {
      const double priority = inner.number().value_or(0);
      out["schedulingPriority"] = priority < 0 ? "low" : priority > 0 ? "high" : "normal";
      continue;
    }
    const std::string here = path.empty() ? name : path + "." + name;
    const bool is_known = !fields.is_map() || fields.find(name) != nullptr;
    if (!is_known) unknown.push_back(here);
    modernize(inner, fields.at(name), here, unknown);
    out[name] = inner;
  }
  value = std::move(out);
}

std::string storage_key(const Storage& storage) {
  return storage.key.empty() ? environment("AZURE_BATCHAI_STORAGE_KEY") : storage.key;
}

Value credentials(const Storage& storage) {
  const std::string key = storage_key(storage);
  return key.empty() ? Value::map() : Value{{"accountKey", key}};
}

// The account of Batch AI's own setting comes before that of all storage.
std::string known_account(const Arm& arm, const Storage& storage) {
  if (!storage.account.empty()) return storage.account;
  const std::string set = environment("AZURE_BATCHAI_STORAGE_ACCOUNT");
  return set.empty() ? arm.known_account({}) : set;
}

Outcome<void> replace_account(const Arm& arm, Value& volume, const char* key, const Storage& storage) {
  std::string text = text_at(volume, {key});
  const std::size_t at = text.find(account_mark);
  if (at == std::string::npos) return {};
  const std::string account = known_account(arm, storage);
  if (account.empty())
    return misuse(fmt::format("the configuration file needs a storage account for {}", account_mark),
                  "--storage-account-name NAME, or set AZURE_BATCHAI_STORAGE_ACCOUNT");
  volume[key] = text.replace(at, std::string_view(account_mark).size(), account);
  return {};
}

Value& collection(Value& volumes, const char* name) {
  if (!volumes.is_map()) volumes = Value::map();
  Value& list = volumes[name];
  if (!list.is_list()) list = Value::list();
  return list;
}

std::string login_name() {
  if (const passwd* entry = ::getpwuid(::getuid())) return entry->pw_name;
  return environment("USER");
}

Outcome<void> generate_key(const std::string& key_file) {
  if (::access(key_file.c_str(), F_OK) == 0) return {};
  if (const auto made = make_folders(key_file.substr(0, key_file.rfind('/')), 0700); !made)
    return give_up(made);
  const auto ran =
      run_to_exit({.argv = {"ssh-keygen", "-q", "-t", "rsa", "-b", "3072", "-N", "", "-f", key_file},
                   .input = Stdio::inherit,
                   .group = ProcessGroup::inherit});
  if (!ran || !ran->is_success())
    return refuse("a key could not be made", "ssh-keygen is not there or failed",
                  "install it, or use --password");
  return {};
}

// The public key itself, or what a file has.
Outcome<std::string> public_key(const std::string& given) {
  std::string key = given;
  if (::access(given.c_str(), R_OK) == 0) {
    const Result<std::string> text = read_file(given);
    if (!text) return give_up(text);
    key = *text;
  }
  key.erase(key.find_last_not_of(" \t\r\n") + 1);
  if (key.starts_with("ssh-") || key.starts_with("ecdsa-") || key.starts_with("sk-")) return key;
  if (key.find("PRIVATE KEY") != std::string::npos)
    return misuse(given + " has a private key", "-k " + given + ".pub");
  return misuse(fmt::format("-k: '{}' is neither a public key nor a file with one", given.substr(0, 100)),
                "--generate-ssh-keys makes one");
}

}  // namespace

Command& add_storage(Command& command, Storage& storage) {
  return command
      .text("--storage-account-name NAME", storage.account, "the storage account of shares and containers")
      .text("--storage-account-key KEY", storage.key, "its key (accepted and ignored)")
      .text("--afs-name,--azure-file-share NAME", storage.share, "a file share to mount")
      .text("--afs-mount-path PATH", storage.share_path, "where, below the mount root (default: afs)")
      .text("--bfs-name,--container-name NAME", storage.container, "a blob container to mount")
      .text("--bfs-mount-path,--container-mount-path PATH", storage.container_path, "where (default: bfs)")
      .text("--nfs,--nfs-name NAME", storage.file_server, "a file server to mount, by name or id")
      .text("--nfs-mount-path PATH", storage.file_server_path, "where (default: nfs)");
}

std::string share_url(const std::string& account, const std::string& share) {
  return fmt::format("https://{}.file.core.windows.net/{}", account, share);
}

Outcome<Value> read_config(Arm& arm, const std::string& path, const View& view) {
  const Result<std::string> text = read_file(path);
  if (!text) return give_up(text);
  const Result<Value> file = wire::parse_json(*text, path);
  if (!file) return give_up(file);
  if (!file->is_map()) return misuse(path + " is not a JSON object", R"({"properties": {…}})");
  Value properties = file->at("properties").is_map() ? file->at("properties") : *file;
  std::vector<std::string> unknown;
  modernize(properties, known_fields(view), {}, unknown);
  for (const std::string& key : unknown)
    arm.context().say(fmt::format("warning: {}: {} is unknown; it is passed on", path, printable(key)));
  return properties;
}

namespace {

// The line of a path like properties.inputDirectories[1].id, or of the innermost part of it that is there.
int line_of(const Value& root, std::string_view path) {
  const Value* at = &root;
  int line = root.line;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".[]"), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty()) continue;
    std::size_t index = 0;
    const bool is_index = at->kind == Value::Kind::list &&
                          std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc{};
    const Value* next = !is_index ? at->find(part) : index < at->items.size() ? &at->items[index] : nullptr;
    if (next == nullptr) return line;
    at = next;
    if (at->line > 0) line = at->line;
  }
  return line;
}

// "properties.x: line 1: properties.x is …" of the body that was sent, as "job.json:7: properties.x is …".
std::string located(std::string_view said, const Value& file, const std::string& name) {
  const std::string_view whole = said;
  const auto skip_to = [&](std::string_view mark) {
    if (const std::size_t at = said.find(mark); at != std::string_view::npos)
      said.remove_prefix(at + mark.size());
  };
  if (said.substr(0, said.find(' ')).ends_with(':')) skip_to(": ");
  if (said.starts_with("line ")) skip_to(": ");
  const std::string_view path = said.substr(0, said.find(' '));
  if (!path.starts_with("properties")) return std::string(whole);
  return fmt::format("{}:{}: {}", name, line_of(file, path), said);
}

}  // namespace

Outcome<Value> put_config(Arm& arm, const std::string& target, const Value& properties, Waiting waiting,
                          const std::string& file) {
  Outcome<Value> made = arm.put(target, {{"properties", properties}}, waiting);
  if (made || file.empty() || made.error().status != 400) return made;
  const Result<std::string> text = read_file(file);
  if (!text) return made;
  const Result<Value> lines = wire::parse_yaml(*text, file);  // which JSON is, and which keeps lines
  if (!lines) return made;
  Failure failure = made.error();
  failure.what = located(failure.what, *lines, file);
  std::string why;
  for (std::string_view rest = failure.why; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    why += (why.empty() ? "" : "\n") + located(rest.substr(0, end), *lines, file);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  failure.why = std::move(why);
  return give_up(std::move(failure));
}

Outcome<void> fill_volumes(Arm& arm, Value& volumes, const Storage& storage) {
  if (!volumes.is_map()) return {};
  for (const char* kind : {"azureFileShares", "azureBlobFileSystems"}) {
    Value* const list = volumes.find(kind);
    if (list == nullptr) continue;
    for (Value& volume : list->items) {
      if (!volume.is_map()) continue;
      for (const char* key : {"accountName", "azureFileUrl"})
        if (auto done = replace_account(arm, volume, key, storage); !done) return done;
      if (text_at(volume, {"accountName"}).empty()) {
        const std::string url = text_at(volume, {"azureFileUrl"});
        const std::size_t host = url.find("://");
        if (host != std::string::npos)
          volume["accountName"] = url.substr(host + 3, url.find_first_of("./", host + 3) - host - 3);
      }
      if (!volume.at("credentials").is_map()) volume["credentials"] = credentials(storage);
      if (text_at(volume, {"credentials", "accountKey"}) == key_mark)
        volume["credentials"] = credentials(storage);
    }
  }
  return {};
}

Outcome<void> add_volumes(Arm& arm, const Scope& scope, Value& volumes, const Storage& storage) {
  const auto path = [](const std::string& given, const char* otherwise) {
    return given.empty() ? otherwise : given;
  };
  if (!storage.share.empty()) {
    const std::string account = arm.account(known_account(arm, storage));
    collection(volumes, "azureFileShares")
        .items.push_back({{"accountName", account},
                          {"azureFileUrl", share_url(account, storage.share)},
                          {"credentials", credentials(storage)},
                          {"relativeMountPath", path(storage.share_path, "afs")}});
  }
  if (!storage.container.empty())
    collection(volumes, "azureBlobFileSystems")
        .items.push_back({{"accountName", arm.account(known_account(arm, storage))},
                          {"containerName", storage.container},
                          {"credentials", credentials(storage)},
                          {"relativeMountPath", path(storage.container_path, "bfs")}});
  if (!storage.file_server.empty())
    collection(volumes, "fileServers")
        .items.push_back({{"fileServer", {{"id", arm.file_server(scope, storage.file_server)}}},
                          {"relativeMountPath", path(storage.file_server_path, "nfs")},
                          {"mountOptions", "rw"}});
  return {};
}

Command& add_admin(Command& command, Admin& admin) {
  return command
      .text("-u,--user-name,--admin-user-name NAME", admin.user, "who administers the nodes (default: you)")
      .text("-k,--ssh-key KEY", admin.key, "a public key, or the file with it (default: ~/.ssh/id_rsa.pub)")
      .text("-p,--password PASSWORD", admin.password, "a password to log in with")
      .flag("--generate-ssh-keys", admin.generate, "make ~/.ssh/id_rsa where there is none");
}

Outcome<Value> admin_settings(const Value& given, const Admin& admin) {
  Value settings = given.is_map() ? given : Value::map();
  if (!admin.user.empty()) settings["adminUserName"] = admin.user;
  if (text_at(settings, {"adminUserName"}).empty()) settings["adminUserName"] = login_name();
  if (!admin.password.empty()) settings["adminUserPassword"] = admin.password;
  const std::string usual = environment("HOME") + "/.ssh/id_rsa";
  if (admin.generate)
    if (const auto made = generate_key(usual); !made) return give_up(made);
  std::string key = admin.key.empty() ? text_at(settings, {"adminUserSshPublicKey"}) : admin.key;
  const bool has_password = !text_at(settings, {"adminUserPassword"}).empty();
  if (key.empty() && ((!has_password && ::access((usual + ".pub").c_str(), R_OK) == 0) || admin.generate))
    key = usual + ".pub";
  if (key.empty() && !has_password)
    return misuse("there is neither a key nor a password to log in with",
                  "-k FILE, --generate-ssh-keys, or --password");
  if (!key.empty()) {
    const Outcome<std::string> read = public_key(key);
    if (!read) return give_up(read);
    settings["adminUserSshPublicKey"] = *read;
  }
  return settings;
}

}  // namespace slipway::cli::az
