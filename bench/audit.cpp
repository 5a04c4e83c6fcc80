// What the audit log adds to a submit: two services in this process, one that keeps the log and one that does
// not, are given the same jobs in turn.
//
//   audit [SUBMITS]      prints, for each round, microseconds of CPU a submit, of all threads, without and
//   with
//                        the log
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include "api/service.h"
#include "base/check.h"
#include "cpu_time.h"

using namespace slipway;

namespace {

constexpr int together_count = 16;  // submits that wait at the same time, as those of several users do

double cpu_us_a_submit(test::Service& service, int count, bool is_audited) {
  const std::string job = test::job_body("bench", R"("pool":"lab",)");
  const double begin = cpu_seconds();
  for (int i = 0; i < count; i += together_count) {
    std::vector<std::future<test::Answer>> answers;
    for (int each = 0; each < together_count; ++each)
      answers.push_back(service.begin("POST", "/v1/jobs", job, "admin"));
    for (auto& answer : answers) SLIPWAY_CHECK(answer.get().status == 201);
  }
  if (is_audited) service.audit().flush();
  return (cpu_seconds() - begin) / count * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 2000;
  test::Service without;
  test::Service with({}, {}, {.is_kept = true});
  for (test::Service* service : {&without, &with})
    SLIPWAY_CHECK(
        service->ask("POST", "/v1/pools", R"({"name":"lab","nodes":0,"provisioner":"none"})").status < 300);
  for (int round = 0; round < 7; ++round) {
    const double plain = cpu_us_a_submit(without, count, false);
    std::printf("%.2f %.2f\n", plain, cpu_us_a_submit(with, count, true));
  }
  return 0;
}
