/* Buffers that are unmapped, mapped again or replaced in place between messages: whatever was
 * remembered about an address, the new memory counts. ranks: 2 */
#include <sys/mman.h>

#include "case.h"

enum { ROUNDS = 24, ROWS = 70000, PITCH = 6 };
static const size_t bytes = (size_t)ROWS * PITCH * sizeof(double);

static double* map_at(double* place) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0);
  double* memory = mmap(place, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
  return memory;
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Datatype type;
  MPI_Type_vector(ROWS, 1, PITCH, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  double* memory = map_at(NULL);
  for (int round = 0; round < ROUNDS; round++) {
    if (case_rank == round % 2) {
      for (int i = 0; i < ROWS; i++) memory[i * PITCH] = round * 1e6 + i;
      MPI_Send(memory, 1, type, partner(), 0, MPI_COMM_WORLD);
    } else if (case_rank < 2) {
      MPI_Recv(memory, 1, type, partner(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < ROWS * PITCH; i++) {
        double want = i % PITCH ? 0 : round * 1e6 + i / PITCH;
        check(memory[i] == want, "round %d, cell %d: %.0f, not %.0f", round, i, memory[i], want);
      }
    }
    if (round % 3) munmap(memory, bytes); /* else: mapped over */
    memory = map_at(memory);
  }
  munmap(memory, bytes);
  MPI_Type_free(&type);
  return case_end();
}
