// Adds up the area under 4 / (1 + x²) between 0 and 1, which is pi: every rank a share of the strips, round by round.
// Rank 0 notes each round in $SLIPWAY_CHECKPOINT_DIR; a next attempt goes on after the last one that was noted.
//     mpicc -O2 mpi_pi.c -o pi && mpirun -np 2 ./pi
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rounds_max = 50 };
static const long strips = 1600L * 1000 * 1000;  // of all rounds and ranks together

// A round is a slice of the interval; a rank takes every ranks-th strip of it.
static double area(int round, int rank, int ranks) {
  const long first = strips / rounds_max * round, last = strips / rounds_max * (round + 1);
  double sum = 0;
  for (long strip = first + rank; strip < last; strip += ranks) {
    const double x = (strip + 0.5) / strips;
    sum += 4 / (1 + x * x);
  }
  return sum / strips;
}

static const char* checkpoint(const char* ending) {
  static char path[4096];
  const char* folder = getenv("SLIPWAY_CHECKPOINT_DIR");
  snprintf(path, sizeof path, "%s/pi.txt%s", folder ? folder : ".", ending);
  return path;
}

static void load(int* rounds, double* pi) {
  FILE* file = fopen(checkpoint(""), "r");
  if (!file) return;
  if (fscanf(file, "%d %la", rounds, pi) == 2) printf("resumed at round %d\n", *rounds);
  fclose(file);
}

// Written beside and then moved: a checkpoint is whole, whenever this process is killed.
static void save(int rounds, double pi) {
  char before[4096];
  snprintf(before, sizeof before, "%s", checkpoint(".new"));
  FILE* file = fopen(before, "w");
  if (!file) return;
  fprintf(file, "%d %a\n", rounds, pi);
  if (fclose(file) == 0) rename(before, checkpoint(""));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  setvbuf(stdout, NULL, _IOLBF, 0);
  int rank, ranks, length;
  char host[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Get_processor_name(host, &length);
  printf("rank %d of %d on %s\n", rank, ranks, host);

  int rounds = 0;
  double pi = 0, mine = 0;
  if (rank == 0) load(&rounds, &pi);
  MPI_Bcast(&rounds, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (; rounds < rounds_max; ++rounds) {
    const double part = area(rounds, rank, ranks);
    double sum;
    MPI_Reduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    mine += part;
    if (rank != 0) continue;
    pi += sum;
    save(rounds + 1, pi);
    if ((rounds + 1) % 5 == 0) printf("round %d  %.6f so far\n", rounds + 1, pi);
  }
  printf("rank %d added %.6f\n", rank, mine);
  if (rank == 0) printf("done: pi is %.12f\n", pi);
  MPI_Finalize();
  return 0;
}
