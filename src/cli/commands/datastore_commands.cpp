#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "cli/client/datastore_files.h"
#include "cli/commands/commands.h"

namespace slipway::cli {
namespace {

struct Options {
  std::string name, path, url, key_file, from, to;
  bool yes = false;
};

std::string place_of(const Value& datastore) {
  for (const char* key : {"path", "url"})
    if (std::string text = datastore.text_at(key); !text.empty()) return text;
  return "in the service's folder";
}

std::string describe(const Value& datastore) {
  return format_fields({{"name", datastore.text_at("name")},
                        {"place", place_of(datastore)},
                        {"made", time_text(datastore, "created_at")}});
}

Outcome<int> create(Context& context, const Options& options) {
  if (!options.path.empty() && !options.url.empty())
    return misuse("a datastore has a folder or a container, not both", "give --path or --url");
  if (!options.key_file.empty() && options.url.empty())
    return misuse("--key-file is the key of a container",
                  "add --url https://ACCOUNT.blob.core.windows.net/NAME");
  Value body = Value::map();
  if (!options.path.empty()) {
    std::error_code error;
    body["path"] = std::filesystem::absolute(options.path, error).lexically_normal().string();
  }
  if (!options.url.empty()) body["url"] = options.url;
  if (!options.key_file.empty()) {
    const Result<std::string> key = read_file(options.key_file);
    if (!key) return give_up(key);
    std::string text = *key;
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    body["key"] = text;
  }
  const Outcome<Value> made =
      context.service().send("PUT", resource({"datastores", options.name}), wire::format_json(body));
  if (!made) return give_up(made);
  return print(context, *made, options.name, [&] { return describe(*made); });
}

Outcome<int> list(Context& context) {
  return print_list(
      context,
      {.target = resource({"datastores"}),
       .columns = {column("NAME", "name"), {{"PLACE"}, place_of}, age_column(context, "AGE", "created_at")},
       .empty = "there are no datastores; slipway datastore create NAME makes one"});
}

Outcome<int> show(Context& context, const Options& options) {
  const Outcome<Value> found = context.service().get(resource({"datastores", options.name}));
  if (!found) return give_up(found);
  return print(context, *found, options.name, [&] { return describe(*found); });
}

Outcome<int> remove(Context& context, const Options& options) {
  const std::string question =
      fmt::format("Delete datastore {}? Files in the service's folder go with it.", options.name);
  if (const auto sure = confirm(question, options.yes); !sure) return give_up(sure);
  const Outcome<Value> removed = context.service().send("DELETE", resource({"datastores", options.name}), {});
  if (!removed) return give_up(removed);
  context.say(fmt::format("{} is deleted", options.name));
  return ExitCode::done;
}

void report(Context& context, const DatastoreFiles::Moved& moved, const char* verb) {
  for (const std::string& path : moved.paths)
    if (context.is_quiet()) write_out(path + "\n");
  context.say(fmt::format("{} {} {}, {}", moved.paths.size(), moved.paths.size() == 1 ? "file" : "files",
                          verb, format_bytes(moved.bytes)));
}

Outcome<int> upload(Context& context, const Options& options) {
  DatastoreFiles files(context.service(), options.name);
  std::error_code error;
  if (std::filesystem::is_directory(options.from, error)) {
    const auto moved = files.send_folder(options.from, options.to, {});
    if (!moved) return give_up(moved);
    report(context, *moved, "sent");
    return ExitCode::done;
  }
  const bool into_folder = options.to.empty() || options.to.ends_with("/");
  const std::string to = into_folder ? joined_path(options.to, last_part(options.from)) : options.to;
  if (const auto sent = files.send(options.from, to); !sent) return give_up(sent);
  context.say(fmt::format("{} is at {}/{}", options.from, options.name, to));
  return ExitCode::done;
}

Outcome<int> download(Context& context, const Options& options) {
  DatastoreFiles files(context.service(), options.name);
  std::error_code error;
  bool is_folder = options.from.empty() || options.from == "." || options.from.ends_with("/");
  std::string to = options.to.empty() ? last_part(options.from) : options.to;
  if (!is_folder && std::filesystem::is_directory(to, error)) to = joined_path(to, last_part(options.from));
  if (!is_folder) {
    const Outcome<void> fetched = files.fetch(options.from, to);
    if (fetched) {
      context.say(fmt::format("{}/{} is at {}", options.name, options.from, to));
      return ExitCode::done;
    }
    // Of a folder there is no content; whether it is one says its list.
    const auto listed = files.list(options.from, [](const StoredFile&) { return false; });
    if (!listed) return give_up(fetched);
  }
  const auto moved = files.fetch_folder(options.from == "." ? "" : options.from, to.empty() ? "." : to, {});
  if (!moved) return give_up(moved);
  report(context, *moved, "fetched");
  return ExitCode::done;
}

Outcome<int> list_files(Context& context, const Options& options) {
  const auto size = [](const Value& file) {
    return file.text_at("kind") == "file" ? format_bytes(file.count_at("size")) : std::string();
  };
  return print_list(context, {.target = with_query(resource({"datastores", options.name, "files"}),
                                                   {{"path", options.from}}),
                              .columns = {column("KIND", "kind"),
                                          {{"SIZE", true}, size},
                                          drop(1, age_column(context, "MODIFIED", "modified_at")),
                                          column("NAME", "name")},
                              .empty = "there are no files"});
}

Outcome<int> remove_file(Context& context, const Options& options) {
  const std::string question = fmt::format("Delete {}/{}?", options.name, options.from);
  if (const auto sure = confirm(question, options.yes); !sure) return give_up(sure);
  if (const auto removed = DatastoreFiles(context.service(), options.name).remove(options.from); !removed)
    return give_up(removed);
  return ExitCode::done;
}

}  // namespace

void add_datastore(CommandTree& tree, Context& context) {
  Command datastore =
      tree.add("datastore", "Folders and containers that jobs mount", "slipway datastore list");
  auto options = std::make_shared<Options>();
  const auto verb = [&](const char* name, const char* about, const char* example) {
    Command command = datastore.verb(name, about, example);
    return command.argument("NAME", options->name, "the datastore");
  };
  verb("create", "Make a datastore: a folder of the service, of all nodes, or a container",
       "slipway datastore create faces --path /shared/faces")
      .text("--path DIR", options->path, "a folder that all nodes see (default: one of the service)")
      .text("--url URL", options->url, "an Azure blob container to sync with")
      .text("--key-file FILE", options->key_file, "the file with its key")
      .runs([&context, options] { return create(context, *options); });
  datastore.verb("list", "List datastores", "slipway datastore list").lists().runs([&context] {
    return list(context);
  });
  verb("show", "Show a datastore", "slipway datastore show faces").runs([&context, options] {
    return show(context, *options);
  });
  verb("delete", "Delete a datastore; a folder given with --path stays as it is",
       "slipway datastore delete faces")
      .flag("-y,--yes", options->yes, "do not ask")
      .runs([&context, options] { return remove(context, *options); });
  verb("upload", "Send a file or a folder to a datastore", "slipway datastore upload faces images/ train")
      .argument("SRC", options->from, "a file or folder here")
      .argument("DEST", options->to, "where in the datastore (default: its top)", Need::optional)
      .runs([&context, options] { return upload(context, *options); });
  verb("download", "Fetch a file or a folder from a datastore",
       "slipway datastore download faces train/a.png")
      .argument("SRC", options->from, "a file or folder of the datastore")
      .argument("DEST", options->to, "where to put it (default: here)", Need::optional)
      .runs([&context, options] { return download(context, *options); });
  verb("list-files", "List a folder of a datastore", "slipway datastore list-files faces train")
      .alias("ls")
      .lists()
      .argument("PATH", options->from, "the folder (default: the top)", Need::optional)
      .runs([&context, options] { return list_files(context, *options); });
  verb("delete-file", "Delete a file or a folder of a datastore",
       "slipway datastore delete-file faces train/a.png")
      .alias("rm")
      .argument("PATH", options->from, "what to delete")
      .flag("-y,--yes", options->yes, "do not ask")
      .runs([&context, options] { return remove_file(context, *options); });
}

}  // namespace slipway::cli
