// Two processes over TCP on the loopback: peer_gloo FLOATS FOLDER
#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "measure.h"

static void run(int rank, std::size_t floats, const char* folder) {
  gloo::transport::tcp::attr where;
  where.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  context->connectFullMesh(store, device);
  std::vector<float> values(floats, 0.5F);
  std::vector<double> times;
  for (int i = 0; i < (floats > 1000000 ? 30 : 2000); ++i) {
    const Clock::time_point start = Clock::now();
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction([](void* to, const void* a, const void* b, std::size_t n) {
      for (std::size_t k = 0; k < n; ++k)
        static_cast<float*>(to)[k] = static_cast<const float*>(a)[k] + static_cast<const float*>(b)[k];
    });
    gloo::allreduce(options);
    times.push_back(since(start));
    values[0] = 1;
  }
  if (rank == 0) print_us(times);
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const auto floats = static_cast<std::size_t>(std::atoll(arguments[1]));
  const pid_t other = ::fork();
  run(other == 0 ? 1 : 0, floats, arguments[2]);
  if (other != 0) ::waitpid(other, nullptr, 0);
}
