// Directories and files of shares, blobs of containers.
#include <fmt/format.h>
#include <fnmatch.h>

#include <filesystem>

#include "base/file.h"
#include "cli/az/storage.h"

namespace slipway::cli::az {
namespace {

Value described(const StoredFile& file, const std::string& name) {
  Value out{{"name", name}, {"type", file.is_folder ? "dir" : "file"}, {"properties", Value::map()}};
  if (!file.is_folder) out["properties"]["contentLength"] = file.size;
  out["properties"]["lastModified"] = file.modified_at;
  return out;
}

const View& stored_view() {
  static const View view{nullptr,
                         {{"Name", [](const Value& row) { return text_at(row, {"name"}); }},
                          {"Content Length",
                           [](const Value& row) {
                             return text_at(row, {"properties", "contentLength"});
                           }},
                          {"Type", [](const Value& row) { return text_at(row, {"type"}); }},
                          {"Last Modified", [](const Value& row) {
                             return text_at(row, {"properties", "lastModified"});
                           }}}};
  return view;
}

DatastoreFiles::Choice choice_of(const StorageOptions& options) {
  if (options.pattern.empty()) return {};
  return [pattern = options.pattern](const std::string& below) {
    return ::fnmatch(pattern.c_str(), below.c_str(), 0) == 0;
  };
}

Value names_of(const std::vector<std::string>& paths) {
  Value list = Value::list();
  for (const std::string& path : paths) list.items.push_back(path);
  return list;
}

Outcome<Value> list_folder(Arm& arm, const StorageOptions& options, const std::string& folder,
                           bool only_folders) {
  if (const auto named = need_flag(options.container, "--share-name"); !named) return give_up(named);
  Value list = Value::list();
  const Outcome<void> done = files_of(arm, options, Kind::share).list(folder, [&](const StoredFile& file) {
    if (file.is_folder || !only_folders) list.items.push_back(described(file, last_part(file.path)));
    return true;
  });
  if (!done) return give_up(done);
  return list;
}

Outcome<Value> create_directory(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.container, "--share-name"); !named) return give_up(named);
  if (const auto named = need_flag(options.name, "--name"); !named) return give_up(named);
  if (const auto made = files_of(arm, options, Kind::share).make_folder(options.name); !made)
    return give_up(made);
  return Value{{"created", true}};
}

Outcome<Value> list_directories(Arm& arm, const StorageOptions& options) {
  return list_folder(arm, options, options.name, true);
}

template <Kind kind>
Outcome<Value> remove(Arm& arm, const StorageOptions& options) {
  const std::string& path = options.path.empty() ? options.name : options.path;
  if (const auto named =
          need_flag(options.container, kind == Kind::share ? "--share-name" : "--container-name");
      !named)
    return give_up(named);
  if (const auto named = need_flag(path, kind == Kind::share ? "--path" : "--name"); !named)
    return give_up(named);
  if (const auto removed = files_of(arm, options, kind).remove(path); !removed) return give_up(removed);
  return Value{{"deleted", true}};
}

template <Kind kind>
Outcome<Value> exists(Arm& arm, const StorageOptions& options) {
  const std::string& path = options.path.empty() ? options.name : options.path;
  if (const auto named = need_flag(path, kind == Kind::share ? "--path" : "--name"); !named)
    return give_up(named);
  const std::size_t slash = path.find_last_of('/');
  bool found = false;
  const Outcome<void> done =
      files_of(arm, options, kind)
          .list(slash == std::string::npos ? "" : path.substr(0, slash),
                [&](const StoredFile& file) { return !(found = found || file.path == path); });
  if (!done && done.error().status != 404) return give_up(done);
  return Value{{"exists", found}};
}

// A path without a dot in its last part is a folder, as az has it; the file keeps its name there.
std::string file_path(const std::string& path, const std::string& source) {
  if (path.empty() || path.ends_with("/") || last_part(path).find('.') == std::string::npos)
    return joined_path(path, last_part(source));
  return path;
}

// Where a fetched file goes: a folder keeps its name.
std::string local_path(const std::string& given, const std::string& path) {
  std::error_code error;
  if (given.empty()) return last_part(path);
  return std::filesystem::is_directory(given, error) ? joined_path(given, last_part(path)) : given;
}

template <Kind kind>
Outcome<Value> upload(Arm& arm, const StorageOptions& options) {
  const bool is_share = kind == Kind::share;
  if (const auto named = need_flag(options.container, is_share ? "--share-name" : "--container-name"); !named)
    return give_up(named);
  if (const auto named = need_flag(options.source, is_share ? "--source" : "--file"); !named)
    return give_up(named);
  const std::string to = is_share               ? file_path(options.path, options.source)
                         : options.name.empty() ? last_part(options.source)
                                                : options.name;
  if (const auto sent = files_of(arm, options, kind).send(options.source, to); !sent) return give_up(sent);
  arm.context().say(fmt::format("{} is at {}/{}", options.source, options.container, to));
  return Value();
}

template <Kind kind>
Outcome<Value> download(Arm& arm, const StorageOptions& options) {
  const bool is_share = kind == Kind::share;
  const std::string& path = is_share ? options.path : options.name;
  if (const auto named = need_flag(options.container, is_share ? "--share-name" : "--container-name"); !named)
    return give_up(named);
  if (const auto named = need_flag(path, is_share ? "--path" : "--name"); !named) return give_up(named);
  const std::string to = local_path(options.destination, path);
  if (const auto fetched = files_of(arm, options, kind).fetch(path, to); !fetched) return give_up(fetched);
  arm.context().say(fmt::format("{}/{} is at {}", options.container, path, to));
  return Value();
}

template <Kind kind>
Outcome<Value> upload_batch(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.container, "--destination"); !named) return give_up(named);
  if (const auto named = need_flag(options.source, "--source"); !named) return give_up(named);
  const auto moved =
      files_of(arm, options, kind).send_folder(options.source, options.destination_path, choice_of(options));
  if (!moved) return give_up(moved);
  return names_of(moved->paths);
}

template <Kind kind>
Outcome<Value> download_batch(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.container, "--source"); !named) return give_up(named);
  if (const auto named = need_flag(options.destination, "--destination"); !named) return give_up(named);
  if (const auto made = make_folders(options.destination); !made) return give_up(made);
  const auto moved = files_of(arm, options, kind).fetch_folder("", options.destination, choice_of(options));
  if (!moved) return give_up(moved);
  return names_of(moved->paths);
}

Outcome<Value> list_files(Arm& arm, const StorageOptions& options) {
  return list_folder(arm, options, options.path, false);
}

Outcome<Value> list_blobs(Arm& arm, const StorageOptions& options) {
  if (const auto named = need_flag(options.container, "--container-name"); !named) return give_up(named);
  Value list = Value::list();
  const Outcome<void> done =
      files_of(arm, options, Kind::container).walk("", [&](const StoredFile& file) -> Outcome<void> {
        if (file.path.starts_with(options.prefix)) list.items.push_back(described(file, file.path));
        return {};
      });
  if (!done) return give_up(done);
  std::sort(list.items.begin(), list.items.end(),
            [](const Value& a, const Value& b) { return a.at("name").text < b.at("name").text; });
  if (options.results && list.items.size() > *options.results) list.items.resize(*options.results);
  return list;
}

template <Kind kind>
void add_batches(Command& noun, Context& context) {
  const bool is_share = kind == Kind::share;
  auto [up, sent] = storage_verb(noun, context, "upload-batch", "Send a folder",
                                 is_share ? "slipway storage file upload-batch -d data -s images"
                                          : "slipway storage blob upload-batch -d data -s images",
                                 upload_batch<kind>);
  up.text("-d,--destination NAME", sent->container, is_share ? "the share" : "the container")
      .text("-s,--source DIR", sent->source, "the folder here")
      .text("--destination-path PATH", sent->destination_path, "a folder there (default: the top)")
      .text("--pattern GLOB", sent->pattern, "only files like this")
      .flag("--no-progress", sent->no_progress, "taken; there is none")
      .flag("--overwrite", sent->overwrite, "taken; files are replaced");
  auto [down, fetched] = storage_verb(noun, context, "download-batch", "Fetch all files",
                                      is_share ? "slipway storage file download-batch -s data -d ."
                                               : "slipway storage blob download-batch -s data -d .",
                                      download_batch<kind>);
  down.text("-s,--source NAME", fetched->container, is_share ? "the share" : "the container")
      .text("-d,--destination DIR", fetched->destination, "a folder here")
      .text("--pattern GLOB", fetched->pattern, "only files like this")
      .flag("--no-progress", fetched->no_progress, "taken; there is none");
}

constexpr const char* share_flag = "-s,--share-name NAME";
constexpr const char* container_flag = "-c,--container-name NAME";

void add_list(Command& noun, Context& context, const char* example, StorageWork work, bool blobs) {
  auto options = std::make_shared<StorageOptions>();
  Command command = noun.verb("list", blobs ? "List blobs" : "List a folder", example);
  add_account(command, *options).text(blobs ? container_flag : share_flag, options->container, "where");
  if (blobs)
    command.text("--prefix TEXT", options->prefix, "only those with this prefix")
        .number("--num-results N", options->results, "at most so many");
  else
    command.text("-n,--name NAME", options->name, "the directory")
        .text("-p,--path PATH", options->path, "the folder");
  runs(command, context, options, stored_view(), work);
}

}  // namespace

void add_file_commands(Command& storage, Context& context) {
  Command directory =
      storage.verb("directory", "Directories of shares", "slipway storage directory list -s data");
  const auto folder_verb = [&](const char* name, const char* about, const char* example, StorageWork work) {
    auto [command, options] = storage_verb(directory, context, name, about, example, work);
    command.text(share_flag, options->container, "the share")
        .text("-n,--name NAME", options->name, "the directory");
  };
  folder_verb("create", "Make a directory", "slipway storage directory create -s data -n mnist",
              create_directory);
  folder_verb("delete", "Delete a directory", "slipway storage directory delete -s data -n mnist",
              remove<Kind::share>);
  folder_verb("exists", "Say whether a directory is there",
              "slipway storage directory exists -s data -n mnist", exists<Kind::share>);
  add_list(directory, context, "slipway storage directory list -s data", list_directories, false);

  Command file = storage.verb("file", "Files of shares", "slipway storage file list -s data -p mnist");
  const auto verb = [&](const char* name, const char* about, const char* example, StorageWork work) {
    auto [command, options] = storage_verb(file, context, name, about, example, work);
    command.text(share_flag, options->container, "the share")
        .text("-p,--path PATH", options->path, "the path in it");
    if (work == upload<Kind::share>) command.text("--source FILE", options->source, "the file here");
    if (work == download<Kind::share>) command.text("--dest FILE", options->destination, "where to put it");
    if (work == upload<Kind::share> || work == download<Kind::share>)
      command.flag("--no-progress", options->no_progress, "taken; there is none");
  };
  verb("upload", "Send a file", "slipway storage file upload -s data --source train.gz -p mnist",
       upload<Kind::share>);
  verb("download", "Fetch a file", "slipway storage file download -s data -p mnist/train.gz",
       download<Kind::share>);
  verb("delete", "Delete a file", "slipway storage file delete -s data -p mnist/train.gz",
       remove<Kind::share>);
  verb("exists", "Say whether a file is there", "slipway storage file exists -s data -p mnist/train.gz",
       exists<Kind::share>);
  add_list(file, context, "slipway storage file list -s data -p mnist -o table", list_files, false);
  add_batches<Kind::share>(file, context);
}

void add_blob_commands(Command& storage, Context& context) {
  Command blob = storage.verb("blob", "Blobs of containers", "slipway storage blob list -c data");
  const auto verb = [&](const char* name, const char* about, const char* example, StorageWork work) {
    auto [command, options] = storage_verb(blob, context, name, about, example, work);
    command.text(container_flag, options->container, "the container")
        .text("-n,--name NAME", options->name, "the blob");
    if (work == upload<Kind::container>) command.text("-f,--file FILE", options->source, "the file here");
    if (work == download<Kind::container>)
      command.text("-f,--file FILE", options->destination, "where to put it");
    if (work == upload<Kind::container> || work == download<Kind::container>)
      command.flag("--no-progress", options->no_progress, "taken; there is none")
          .flag("--overwrite", options->overwrite, "taken; files are replaced");
  };
  verb("upload", "Send a blob", "slipway storage blob upload -c data -f train.gz -n mnist/train.gz",
       upload<Kind::container>);
  verb("download", "Fetch a blob", "slipway storage blob download -c data -n mnist/train.gz -f train.gz",
       download<Kind::container>);
  verb("delete", "Delete a blob", "slipway storage blob delete -c data -n mnist/train.gz",
       remove<Kind::container>);
  verb("exists", "Say whether a blob is there", "slipway storage blob exists -c data -n mnist/train.gz",
       exists<Kind::container>);
  add_list(blob, context, "slipway storage blob list -c data -o table", list_blobs, true);
  add_batches<Kind::container>(blob, context);
}

}  // namespace slipway::cli::az
