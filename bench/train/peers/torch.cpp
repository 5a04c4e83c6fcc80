// The same networks in libtorch, one thread: peer_torch mlp|lenet|vgg BATCH SECONDS [channels_last]
#include <torch/torch.h>

#include <cstring>

#include "measure.h"

namespace nn = torch::nn;

static nn::Sequential make(const std::string& name) {
  if (name == "mlp") return nn::Sequential(nn::Linear(784, 100), nn::Sigmoid(), nn::Linear(100, 10));
  const auto conv = [](int in, int out, int kernel) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
  };
  const auto pool = [] { return nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2)); };
  if (name == "lenet")
    return nn::Sequential(conv(1, 32, 5), nn::ReLU(), pool(), conv(32, 64, 5), nn::ReLU(), pool(),
                          nn::Flatten(), nn::Linear(7 * 7 * 64, 512), nn::ReLU(), nn::Linear(512, 10));
  return nn::Sequential(conv(3, 64, 3), nn::ReLU(), conv(64, 64, 3), nn::ReLU(), pool(), conv(64, 128, 3),
                        nn::ReLU(), conv(128, 128, 3), nn::ReLU(), pool(), nn::Flatten(),
                        nn::Linear(8 * 8 * 128, 512), nn::ReLU(), nn::Dropout(0.5), nn::Linear(512, 10));
}

int main(int count, char** arguments) {
  if (count < 4) return 2;
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const std::string name = arguments[1];
  const int batch = std::atoi(arguments[2]);
  const double limit = std::atof(arguments[3]);
  const bool last = count > 4 && std::strcmp(arguments[4], "channels_last") == 0;
  nn::Sequential net = make(name);
  torch::Tensor data = name == "mlp"     ? torch::rand({2000, 784}) * (torch::rand({2000, 784}) < 0.2)
                       : name == "lenet" ? torch::rand({2000, 1, 28, 28})
                                         : torch::rand({2000, 3, 32, 32});
  const torch::Tensor labels = torch::randint(10, {2000}, torch::kLong);
  if (last) {
    data = data.to(torch::MemoryFormat::ChannelsLast);
    for (auto& parameter : net->parameters())
      if (parameter.dim() == 4)
        parameter.set_data(parameter.data().contiguous(torch::MemoryFormat::ChannelsLast));
  }
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  std::vector<double> steps;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; since(begin) < limit || steps.size() < 5; ++i) {
    const Clock::time_point start = Clock::now();
    const int first = i * batch % (2000 - batch);
    const torch::Tensor loss = torch::nn::functional::cross_entropy(
        net->forward(data.slice(0, first, first + batch)), labels.slice(0, first, first + batch));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (i >= 3 && (since(begin) > limit / 5 || steps.size() < 5)) steps.push_back(since(start));
  }
  std::printf("{\"samples_per_s\": %.0f, \"samples_per_s_p10\": %.0f}\n", batch / median(steps),
              batch / tenth(steps));
}
