/* More ranks than most machines here have cores: pairs play ping-pong, then everybody exchanges
 * with both neighbours. Whoever waits may be moved to another core; the cores that it may run on
 * stay the program's choice. ranks: 8 */
#define _GNU_SOURCE
#include <sched.h>

#include "case.h"

enum { ROWS = 300, PITCH = 17, ROUNDS = 400 };

static int grid[ROWS * PITCH], other[ROWS * PITCH];

static void fill(int value) {
  for (int i = 0; i < ROWS * PITCH; i++) grid[i] = value + i;
}

static void compare(const int* column, int value, int round) {
  for (int i = 0; i < ROWS * PITCH; i++) {
    int want = i % PITCH < 3 ? value + i : -1;
    if (!check(column[i] == want, "round %d: %d, not %d", round, column[i], want)) return;
  }
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  MPI_Datatype column;
  MPI_Type_vector(ROWS, 3, PITCH, MPI_INT, &column);
  MPI_Type_commit(&column);
  int mate = case_rank ^ 1;
  for (int round = 0; mate < case_ranks && round < ROUNDS; round++) {
    fill(round * 100 + case_rank);
    memset(other, -1, sizeof other);
    if (case_rank < mate) MPI_Send(grid, 1, column, mate, 0, MPI_COMM_WORLD);
    MPI_Recv(other, 1, column, mate, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (case_rank > mate) MPI_Send(grid, 1, column, mate, 0, MPI_COMM_WORLD);
    compare(other, round * 100 + mate, round);
  }
  int right = (case_rank + 1) % case_ranks, left = (case_rank + case_ranks - 1) % case_ranks;
  for (int round = 0; round < ROUNDS; round++) {
    fill(round * 100 + case_rank);
    memset(other, -1, sizeof other);
    MPI_Sendrecv(grid, 1, column, right, 1, other, 1, column, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    compare(other, round * 100 + left, round);
  }
  MPI_Type_free(&column);
  sched_getaffinity(0, sizeof after, &after);
  check(CPU_EQUAL(&before, &after), "the cores that it may run on have changed");
  return case_end();
}
