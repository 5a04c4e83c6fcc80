// Output files of a job: listed, and streamed while they grow.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file.h"
#include "cli/az/batchai.h"
#include "cli/az/gang_stream.h"
#include "cli/client/retry.h"
#include "cli/output/interrupt.h"

namespace slipway::cli::az {
namespace {

using Time = std::chrono::steady_clock;

// A new line is shown within 50 ms; a request takes a few of them.
constexpr auto look_again_after = 20ms;
constexpr auto state_asked_every = 200ms;
constexpr auto list_asked_every = 250ms;
constexpr std::uint64_t piece_max = 4u << 20;
constexpr std::uint32_t link_minutes = 60, link_minutes_max = 600;

struct JobFileOptions : Named {
  std::string job, directory_id = "stdouterr", path = ".", file;
  std::optional<std::uint32_t> expiry;
};

// In the first version's list-files, -n named the job.
std::string job_name(const JobFileOptions& options) {
  return options.job.empty() ? options.name : options.job;
}

Outcome<Value> list(Arm& arm, const JobFileOptions& options) {
  if (const auto named = need(job_name(options), "-j", "slipway batchai job file list -j fit"); !named)
    return give_up(named);
  return arm.list(arm.job(options, job_name(options)) + "/listOutputFiles",
                  {{"outputdirectoryid", options.directory_id},
                   {"directory", options.path},
                   {"linkexpiryinminutes", std::to_string(options.expiry.value_or(link_minutes))},
                   {"maxresults", "1000"}},
                  "POST");
}

// Fetches what a file has from an offset on, over one connection. The link works by itself, without our
// token, and may point to another host than the service's.
class Link {
 public:
  Link(Service& service, const std::string& url) : service_(service), target_(target_of(url)) {
    const std::string host = url.substr(0, url.size() - target_.size());
    if (host != service.url())
      if (Result<net::Url> parsed = net::parse_url(host))
        elsewhere_ = std::make_unique<net::Client>(std::move(*parsed));
  }

  struct Got {
    std::uint64_t bytes = 0;  // all of them written to stdout
    bool refused = false;     // the link works no longer
  };
  // What is new. Anything that is not there yet is nothing.
  Outcome<Got> copy_new(std::uint64_t offset) {
    Got got;
    int status = 0;
    Result<void> written;
    net::Client::Options options;
    options.headers = {{"Range", fmt::format("bytes={}-", offset)}};
    options.on_piece = [&](std::string_view piece) {
      written = write_all(STDOUT_FILENO, piece, "standard output");
      got.bytes += piece.size();
      return written.has_value();
    };
    if (elsewhere_) {
      const Result<net::Response> answer = elsewhere_->request("GET", target_, options);
      if (answer) status = answer->status;
    } else {
      const Outcome<net::Response> answer = service_.request("GET", target_, options);
      if (!answer) status = answer.error().status;
      if (!answer && answer.error().exit_code == ExitCode::unreachable && got.bytes == 0)
        return give_up(answer);
    }
    if (!written) return give_up(written);
    got.refused = status == 401 || status == 403 || status == 410;
    return got;
  }

 private:
  Service& service_;
  std::string target_;
  std::unique_ptr<net::Client> elsewhere_;
};

class Streamer {
 public:
  Streamer(Arm& arm, const JobFileOptions& options) : arm_(arm), options_(options) {}

  Outcome<int> run() {
    Outcome<std::string> url = found();
    if (!url) return give_up(url);
    if (is_gang_) return stream_gang();
    if (url->empty()) return ExitCode::done;
    arm_.context().say(fmt::format("The file is at {}", *url));
    Service connection = arm_.context().service().another();
    auto link = std::make_unique<Link>(connection, *url);
    std::uint64_t done = 0;
    Time::time_point state_asked{};
    Retry retry;
    for (bool last = false;;) {
      const Outcome<Link::Got> got = link->copy_new(done);
      if (!got && retry.again(got.error())) continue;
      if (!got) return give_up(got);
      retry.reset();
      done += got->bytes;
      if (got->bytes > 0) continue;  // there may be more already
      if (got->refused) {            // links end after a while; jobs may take longer
        std::this_thread::sleep_for(state_asked_every);
        if (url = found(); !url) return give_up(url);
        if (url->empty()) return ExitCode::done;
        link = std::make_unique<Link>(connection, *url);
      }
      if (last) return ExitCode::done;
      if (const auto now = Time::now(); now - state_asked > state_asked_every) {
        state_asked = now;
        const Outcome<bool> over = is_over();
        if (!over) return give_up(over);
        last = *over;  // and once more: what was written before the end and after our last look
        if (last) continue;
      }
      std::this_thread::sleep_for(look_again_after);
    }
  }

 private:
  Outcome<bool> is_over() {
    const Outcome<Value> job = with_retry([&] { return arm_.get(arm_.job(options_, job_name(options_))); });
    if (!job) {
      if (job.error().status == 404) return true;  // deleted meanwhile: nothing more comes
      return give_up(job);
    }
    return is_final(*job);
  }
  static bool is_final(const Value& job) {
    const std::string state = text_at(job, {"properties", "executionState"});
    return state == "succeeded" || state == "failed";
  }

  Outcome<GangStream::Seen> look() {
    // The state is asked before the list, so that a file of a job that just ended is not missed.
    const Outcome<bool> over = is_over();
    if (!over) return give_up(over);
    const Outcome<Value> files = with_retry([&] { return list(arm_, options_); });
    if (!files && files.error().status != 404) return give_up(files);
    GangStream::Seen seen;
    seen.is_over = *over;
    if (files)
      for (const Value& file : files->items)
        seen.links.emplace_back(text_at(file, {"name"}), text_at(file, {"downloadUrl"}));
    return seen;
  }

  Outcome<int> stream_gang() {
    Service connection = arm_.context().service().another();
    const auto fetch = [&](const std::string& link, std::uint64_t offset) -> Outcome<std::string> {
      net::Client::Options options;
      options.headers = {{"Range", fmt::format("bytes={}-{}", offset, offset + piece_max - 1)}};
      const Outcome<net::Response> answer =
          with_retry([&] { return connection.request("GET", target_of(link), options); });
      if (answer) return answer->body;
      // Nothing more yet, or a link that works no longer: the next list has another.
      if (answer.error().status >= 400 && answer.error().status < 500) return std::string();
      return give_up(answer);
    };
    return GangStream(
               options_.file, [this] { return look(); }, fetch,
               [this](const std::string& words) { arm_.context().say(words); })
        .run();
  }

  // Several nodes write stderr-wk-0.txt and others, where the job of one node has stderr.txt.
  bool is_of_gang(const Value& files) const {
    if (!same_word(options_.directory_id, "stdouterr")) return false;
    if (options_.file != "stdout.txt" && options_.file != "stderr.txt") return false;
    std::vector<std::string> names;
    for (const Value& file : files.items) names.push_back(text_at(file, {"name"}));
    return !files_of_gang(names, options_.file).empty();
  }

  // Where the file is; empty when the job ended without it, and when there is one of each process.
  Outcome<std::string> found() {
    bool said = false;
    // The state is asked before the list, so that a file of a job that just ended is not missed.
    for (bool first = true;; first = false) {
      if (!first && !std::exchange(said, true))
        arm_.context().say(fmt::format("{} is not there yet: waiting for it", options_.file));
      const Outcome<Value> job = arm_.get(arm_.job(options_, job_name(options_)));
      if (!job) return give_up(job);
      const bool over = is_final(*job);
      const Outcome<Value> files = with_retry([&] { return list(arm_, options_); });
      if (!files) return give_up(files);
      for (const Value& file : files->items)
        if (text_at(file, {"name"}) == options_.file) return text_at(file, {"downloadUrl"});
      if (is_gang_ = is_of_gang(*files); is_gang_) return std::string();
      if (over) return std::string();
      std::this_thread::sleep_for(list_asked_every);
    }
  }

  Arm& arm_;
  const JobFileOptions& options_;
  bool is_gang_ = false;
};

Outcome<int> stream(Context& context, const JobFileOptions& options) {
  constexpr const char* example = "slipway batchai job file stream -j fit -f stdout.txt";
  if (const auto named = need(options.job, "-j", example); !named) return give_up(named);
  if (const auto named = need(options.file, "-f", example); !named) return give_up(named);
  Outcome<Arm> arm = Arm::open(context, options);
  if (!arm) return give_up(arm);
  const InterruptMessage quiet("", ExitCode::done);
  JobFileOptions lasting = options;
  lasting.expiry = link_minutes_max;
  return Streamer(*arm, lasting).run();
}

void add_list(Command& noun, Context& context, const char* name, bool old) {
  auto options = std::make_shared<JobFileOptions>();
  Command command =
      noun.verb(name, "List output files of a job", "slipway batchai job file list -j fit -o table");
  add_experiment(command, *options)
      .text("-j,--job,--job-name NAME", options->job, "the job")
      .text("-d,--output-directory-id ID", options->directory_id,
            "stdouterr (default), or an output directory's id")
      .text("-p,--path PATH", options->path, "a folder in it (default: .)")
      .number("--expiry,--expiry-time MINUTES", options->expiry, "how long the links work (default: 60)");
  if (old) command.text("-n,--name NAME", options->name, "the job").hidden();
  runs(command, context, options, file_view(), list);
}

void add_stream(Command& noun, Context& context, const char* name, bool old) {
  auto options = std::make_shared<JobFileOptions>();
  Command command = noun.verb(name, "Print an output file of a job while it grows",
                              "slipway batchai job file stream -j fit -f stdout.txt");
  add_experiment(command, *options)
      .text("-j,--job,--job-name NAME", options->job, "the job")
      .text(old ? "-f,--file-name,-n,--name NAME" : "-f,--file-name NAME", options->file, "the file")
      .text("-d,--output-directory-id ID", options->directory_id,
            "stdouterr (default), or an output directory's id")
      .text("-p,--path PATH", options->path, "a folder in it (default: .)");
  if (old) command.hidden();
  command.runs([&context, options] { return stream(context, *options); });
}

}  // namespace

void add_job_files(Command& job, Context& context) {
  Command file = job.verb("file", "Output files of a job", "slipway batchai job file list -j fit -o table");
  add_list(file, context, "list", false);
  add_stream(file, context, "stream", false);
  add_list(job, context, "list-files", true);
  add_list(job, context, "file-list", true);
  add_stream(job, context, "stream-file", true);
  add_stream(job, context, "file-stream", true);
}

}  // namespace slipway::cli::az
