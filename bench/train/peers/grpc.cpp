// A parameter server over gRPC in another process: peer_grpc FLOATS
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "measure.h"
#include "parameters.grpc.pb.h"

class Server final : public bench::Parameters::Service {
 public:
  explicit Server(std::size_t floats) : values_(floats, 0.5F) {}
  grpc::Status Push(grpc::ServerContext*, const bench::Values* gradients, bench::Values* values) override {
    const auto* g = reinterpret_cast<const float*>(gradients->floats().data());
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] -= 1e-6F * g[i];
    values->set_floats(values_.data(), values_.size() * sizeof(float));
    return grpc::Status::OK;
  }

 private:
  std::vector<float> values_;
};

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const auto floats = static_cast<std::size_t>(std::atoll(arguments[1]));
  int pipe[2];
  if (::pipe(pipe) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Server service(floats);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    builder.SetMaxReceiveMessageSize(-1);
    const auto server = builder.BuildAndStart();
    if (::write(pipe[1], &port, sizeof port) != sizeof port) return 1;
    server->Wait();
  }
  int port = 0;
  if (::read(pipe[0], &port, sizeof port) != sizeof port) return 1;
  grpc::ChannelArguments limits;
  limits.SetMaxReceiveMessageSize(-1);
  const auto stub = bench::Parameters::NewStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), limits));
  std::vector<float> gradients(floats, 0.1F), values(floats);
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (since(begin) < 1.0 || times.size() < 8) {
    const Clock::time_point start = Clock::now();
    bench::Values request, answer;
    request.set_floats(gradients.data(), gradients.size() * sizeof(float));
    grpc::ClientContext context;
    if (!stub->Push(&context, request, &answer).ok()) return 1;
    std::memcpy(values.data(), answer.floats().data(), answer.floats().size());
    times.push_back(since(start));
  }
  print_us(times);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}
