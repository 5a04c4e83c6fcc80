// Our side of bench/train/run.py: each command measures one thing for about a second and prints one line of
// JSON.
//
//   step MODEL BATCH [SECONDS]   training steps of one worker: samples per second, median step
//   push FLOATS [encrypted]      push and pull of a parameter server over TCP, in another process:
//   microseconds reduce shm|tcp|encrypted FLOATS   all-reduce of two processes: microseconds checkpoint
//   FLOATS            durable checkpoint and the stall of training: milliseconds
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "train/data/digits.h"
#include "train/data/order.h"
#include "train/exchange/exchange.h"
#include "train/exchange/group.h"
#include "train/exchange/parameter_server.h"
#include "train/nn/network.h"
#include "train/state/writer.h"

namespace {

using namespace slipway::train;
using Seconds = std::chrono::duration<double>;

double since(Steady::time_point begin) { return Seconds(Steady::now() - begin).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}
double tenth(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10),
                   values.end());
  return values[values.size() / 10];
}

// Pictures of noise in CIFAR's shape: speed does not depend on what they show.
Dataset colour_noise(std::size_t count) {
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>(count * 3073);
  slipway::Random random(1);
  for (std::uint8_t& byte : *bytes) byte = static_cast<std::uint8_t>(random.next());
  for (std::size_t i = 0; i < count; ++i) (*bytes)[i * 3073] = static_cast<std::uint8_t>(i % 10);
  return Dataset({3, 32, 32}, 10, {{bytes->data() + 1, 3073, bytes->data(), 3073, count, bytes}});
}

int step(const std::string& name, int batch, double limit) {
  const bool colour = name == "vgg";
  const Dataset data = colour ? colour_noise(2000) : draw_digits(1, {12'000, 10}).train;
  const ModelSpec model = built_in_model(name, {.input = data.shape(), .classes = 10}).value();
  Network network = Network::build(model, 10, {batch}).value();
  Flat values(network.floats()), gradients(network.floats());
  network.initialise(1, values);
  Optimizer optimizer({.rate = 0.01F}, {0, values.size()}, {});
  Order order(1, {data.count(), static_cast<std::size_t>(batch)});
  std::vector<double> steps;
  const Steady::time_point begin = Steady::now();
  for (std::uint64_t i = 0; since(begin) < limit || steps.size() < 5; ++i) {
    const Steady::time_point start = Steady::now();
    network.train(data, order.at(i, 0), i, values, gradients);
    optimizer.apply(i, 1.0F / static_cast<float>(batch), values, gradients);
    if (i >= 3 && (since(begin) > limit / 5 || steps.size() < 5)) steps.push_back(since(start));
  }
  fmt::print("{{\"samples_per_s\": {:.0f}, \"samples_per_s_p10\": {:.0f}}}\n", batch / median(steps),
             batch / tenth(steps));
  return 0;
}

// A child process that ends with us, however we end.
pid_t child(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  work();
  ::_exit(0);
}

// As between hosts, though both ends are on this one.
GangKey gang_key(bool encrypted) {
  if (!encrypted) return {};
  return {"the key of the benchmark's gang", GangKey::Encryption::always};
}

int push(std::size_t floats, const GangKey& key) {
  auto listener = listen_on({"127.0.0.1", 0}).value();
  const Address address{"127.0.0.1", local_port(listener.get()).value()};
  const pid_t server = child([&] {
    Stop stop;
    ServerOptions options;
    options.key = key;
    static_cast<void>(serve_parameters(std::move(listener), options, stop));
  });
  Plan plan;
  plan.floats = floats;
  plan.optimizer.rate = 1e-6F;
  const auto exchange =
      make_servers_exchange({plan, 0, {address}, {}, {std::chrono::seconds(20), nullptr}, key});
  WorkerState state{Flat(floats, 0.5F), Optimizer(plan.optimizer, {0, floats}, {})};
  if (!exchange->join(state)) return 1;
  const auto gradients = exchange->gradients(0);
  std::fill(gradients.begin(), gradients.end(), 0.1F);
  std::vector<double> times;
  const Steady::time_point begin = Steady::now();
  while (since(begin) < 1.0 || times.size() < 8) {
    const Steady::time_point start = Steady::now();
    if (!exchange->step(state, {.tail = {.loss = 1, .samples = 1}})) return 1;
    times.push_back(since(start));
  }
  exchange->leave(true);
  ::waitpid(server, nullptr, 0);
  fmt::print("{{\"us\": {:.1f}, \"us_p10\": {:.1f}}}\n", median(times) * 1e6, tenth(times) * 1e6);
  return 0;
}

int reduce(bool shared, std::size_t floats, const GangKey& key) {
  std::uint16_t port = 0;
  {
    const auto listener = listen_on({"127.0.0.1", 0});
    port = local_port(listener->get()).value();
  }
  const auto run = [&](std::uint32_t rank) {
    AllReduceOptions options;
    options.rank = rank;
    options.ranks = 2;
    options.master = {"127.0.0.1", port};
    options.floats = floats;
    options.wait_limit = {std::chrono::seconds(20), nullptr};
    options.shared_memory = shared;
    options.key = key;
    auto group = Rendezvous::open(options).and_then(
        [](const std::unique_ptr<Rendezvous>& rendezvous) { return rendezvous->form(0); });
    if (!group) return;
    const std::size_t rounds = floats > 1'000'000 ? 30 : 4000;
    std::vector<double> times;
    std::vector<float> result((*group)->own().size());  // where a small sum is put
    for (std::size_t i = 0; i < rounds; ++i) {
      // Each turn has its own buffer; touching it stands for the backward pass that fills it.
      (*group)->own()[0] = static_cast<float>(rank);
      const Steady::time_point start = Steady::now();
      const auto sum = (*group)->reduce({});
      if (!sum || sum->from(0, result).size() != result.size()) return;
      times.push_back(since(start));
    }
    if (rank == 0)
      fmt::print("{{\"us\": {:.1f}, \"us_p10\": {:.1f}}}\n", median(times) * 1e6, tenth(times) * 1e6);
    std::fflush(stdout);
  };
  const pid_t other = child([&] { run(1); });
  run(0);
  ::waitpid(other, nullptr, 0);
  return 0;
}

int checkpoint(std::size_t floats) {
  std::string folder = (std::filesystem::current_path() / "bench-checkpoint-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  std::vector<float> values(floats, 0.25F);
  std::vector<double> durable, stall;
  {
    CheckpointFolder direct(folder + "/direct", 3);
    CheckpointWriter writer(CheckpointFolder(folder + "/beside", 3));
    for (std::uint64_t i = 1; i <= 9; ++i) {
      CheckpointInfo info;
      info.step = i;
      Steady::time_point start = Steady::now();
      if (!direct.save(info, values, {})) return 1;
      if (i > 4) durable.push_back(since(start) * 1e3);  // from then on pages are reused
      // What training feels: asking, a step's computation of 50 ms beside the copy, and waiting for the copy.
      start = Steady::now();
      writer.start(info, [&](std::vector<float>& to, std::vector<float>&) { to = values; });
      double felt = since(start);
      volatile float sink = 0;
      for (const Steady::time_point work = Steady::now(); since(work) < 0.05;) sink = sink + 1;
      start = Steady::now();
      writer.wait_copied();
      felt += since(start);
      stall.push_back(felt * 1e3);
      if (!writer.finish()) return 1;
    }
  }
  std::filesystem::remove_all(folder);
  fmt::print("{{\"durable_ms\": {:.1f}, \"stall_ms\": {:.2f}}}\n", median(durable), median(stall));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  slipway::log::set_level(slipway::log::Level::warning);
  const std::string what = count > 1 ? arguments[1] : "";
  const auto number = [&](int at) { return at < count ? std::atof(arguments[at]) : 0.0; };
  if (what == "step" && count >= 4)
    return step(arguments[2], std::atoi(arguments[3]), count > 4 ? number(4) : 1.0);
  if (what == "push" && count >= 3)
    return push(static_cast<std::size_t>(number(2)),
                gang_key(count > 3 && std::strcmp(arguments[3], "encrypted") == 0));
  if (what == "reduce" && count == 4)
    return reduce(std::strcmp(arguments[2], "shm") == 0, static_cast<std::size_t>(number(3)),
                  gang_key(std::strcmp(arguments[2], "encrypted") == 0));
  if (what == "checkpoint" && count == 3) return checkpoint(static_cast<std::size_t>(number(2)));
  fmt::print(stderr,
             "usage: slipway-train-bench step MODEL BATCH [SECONDS] | push FLOATS [encrypted] | "
             "reduce shm|tcp|encrypted FLOATS | checkpoint FLOATS\n");
  return 2;
}
