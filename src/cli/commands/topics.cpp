#include "cli/commands/topics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "cli/commands/commands.h"

namespace slipway::cli {
namespace {

struct Topic {
  std::string_view name;
  std::string_view about;
  std::string_view text;
};

constexpr Topic topics[] = {
    {"names", "how jobs, tasks, processes and files are named", R"(
  job_7                    a job by its id
  train                    the newest job called so
  job_7/fit                a task of it
  job_7/sweep              all tasks of an array: in logs, outputs, task list, job cancel
  job_7/sweep[198]         one task of an array; sweep.198 is the same, and needs no quotes in a shell
  job_7/fit/worker-1       a process of a gang, by its role or its rank
)"},
    {"output", "forms of output, columns, pagers, narrow terminals", R"(
-o table      for people (default)
-o wide       with all columns, and nothing is cropped
-o json|yaml  what the API answers
-o name       ids only, one a line; quiet is the same
-o jsonpath=  values by a template: -o jsonpath='{range .items[*]}{.id}{"\t"}{.state}{"\n"}{end}'

Lists take --columns JOB,STATE (an unknown one lists them all), --watch, --no-headers and --no-pager.

On a narrow terminal columns are dropped, first those named first:
  job list     RAN, POOL, AGE, DONE, NAME
  task list    ATTEMPTS, NODES, RESULT
  node list    ADDRESS, MEMORY, PRIORITY, GPUS, RUNNING, POOL, CORES, SINCE
  pool list    GPUS, PROVISIONER, MEMORY, LOST, CORES
  queue        PRIORITY, NAME, POOL, TASKS, NEEDS, USER, POSITION, WAITS
  events       EVENT, TIME
  token list   WORKSPACE, USES, NODE, BY, POOL, SCOPE, USED, USER
  pool history  STATES, NODES, TARGET
  files list, datastore list-files  MODIFIED
The reason is never dropped. Output that is no terminal is not cropped, has no colours and no pager.

What is longer than the terminal goes through SLIPWAY_PAGER, else PAGER, else less. NO_COLOR turns colours off.
)"},
    {"placeholders", "{words} in commands", R"(
{rank} {world_size} {local_rank} {index} {attempt} {node} {job} {task}, and what the toolkit adds: {hosts} {master}
{gpus} {role} {mpi_hosts} {ps_hosts} {worker_hosts} {chief_hosts} {master_addr} {master_port} {coordinator}.

They are replaced in commands and in process_environment. An unknown one is refused; {{name}} is a literal {name};
${NAME}, {} and {a,b} are left to the shell. docs/guide/jobs.md has the variables every process gets.
)"},
    {"states", "states of jobs, tasks and nodes", R"(
job    queued running stopping succeeded failed cancelled
task   waiting queued starting running stopping succeeded failed cancelled skipped
node   joining starting idle busy draining evicted start_failed lost left gone

slipway job why JOB says why a job is in its state.
)"},
    {"exit-codes", "what programs can rely on", R"(
  0    done
  1    refused or failed
  2    wrong usage
  3    the service cannot be reached
  124  --timeout passed
  130  Ctrl-C
slipway run and slipway exec exit as their command does: its code, or 128 and the signal.
)"},
    {"environment", "variables that slipway reads", R"(
  SLIPWAY_SERVICE      where the service is (--service)
  SLIPWAY_TOKEN_FILE   the file with your token (--token-file)
  SLIPWAY_HOME         the service's folder (--data; default ~/.slipway)
  SLIPWAY_PAGER        the pager; empty: none (then PAGER, then less)
  EDITOR, VISUAL       for slipway job edit
  NO_COLOR             no colours
)"},
};

}  // namespace

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  for (const Topic& topic : topics) names.emplace_back(topic.name);
  return names;
}

std::optional<std::string> topic_text(std::string_view name) {
  for (const Topic& topic : topics)
    if (topic.name == name) return std::string(topic.text.substr(1));
  return std::nullopt;
}

void add_help(CommandTree& tree, Context&) {
  auto name = std::make_shared<std::string>();
  tree.add("help", "Explain a topic, or a command", "slipway help output")
      .argument("TOPIC", *name, "a topic, or the words of a command: slipway help job submit")
      .runs([name]() -> Outcome<int> {
        if (const auto text = topic_text(*name)) {
          write_out(*text);
          return ExitCode::done;
        }
        return give_up(Failure{ExitCode::usage, fmt::format("there is no help on '{}'", *name),
                               fmt::format("the topics are {}", fmt::join(topic_names(), ", ")),
                               nearest(*name, topic_names())});
      });
}

}  // namespace slipway::cli
