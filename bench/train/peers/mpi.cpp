// mpirun -np 2 peer_mpi FLOATS
#include <mpi.h>

#include <cstdlib>

#include "measure.h"

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int floats = count > 1 ? std::atoi(arguments[1]) : 80000;
  std::vector<float> values(static_cast<std::size_t>(floats), 0.5F), sum(values.size());
  std::vector<double> times;
  for (int i = 0; i < (floats > 1000000 ? 30 : 4000); ++i) {
    const Clock::time_point start = Clock::now();
    MPI_Allreduce(values.data(), sum.data(), floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times.push_back(since(start));
  }
  if (rank == 0) print_us(times);
  MPI_Finalize();
}
