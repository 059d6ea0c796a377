/* A program that makes a type for every message: memory use settles. ranks: 2 */
#include <unistd.h>

#include "case.h"

enum { ROUNDS = 20000, WARM = 3000, CELLS = 600 };
static const long most_growth = 24L << 20;

static long resident(void) {
  long pages = 0, rss = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%ld %ld", &pages, &rss) != 2) rss = 0;
  fclose(file);
  return rss * sysconf(_SC_PAGESIZE);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  int a[CELLS], b[CELLS];
  long before = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int width = 1 + round % 4, blocks = 30 + round % 50;
    MPI_Datatype type;
    if (round % 3) {
      MPI_Type_vector(blocks, width, 6, MPI_INT, &type);
    } else {
      int at[80];
      for (int i = 0; i < blocks; i++) at[i] = 6 * i;
      MPI_Type_create_indexed_block(blocks, width, at, MPI_INT, &type);
    }
    MPI_Type_commit(&type);
    for (int i = 0; i < CELLS; i++) {
      a[i] = round + i;
      b[i] = -1;
    }
    MPI_Request request;
    MPI_Irecv(b, 1, type, partner(), 0, MPI_COMM_WORLD, &request);
    MPI_Send(a, 1, type, partner(), 0, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < CELLS; i++) {
      int sent = i < 6 * blocks && i % 6 < width;
      check(b[i] == (sent ? round + i : -1), "round %d, cell %d: %d", round, i, b[i]);
    }
    if (round == WARM) before = resident();
  }
  long grown = resident() - before;
  check(grown <= most_growth, "resident memory grew by %ld KiB", grown >> 10);
  return case_end();
}
