/* Blocks more than 4 GiB from one another in memory that is mostly not there. ranks: 2 */
#include <sys/mman.h>

#include "case.h"

enum { BLOCKS = 3, LENGTH = 2500 };

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const MPI_Aint step = 0x140000000LL + 40; /* 5 GiB and a bit */
  size_t bytes = (size_t)step * BLOCKS;
  char* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  int possible = memory != MAP_FAILED, all;
  MPI_Allreduce(&possible, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (!all) {
    if (case_rank == 0) puts("SKIP: no 15 GiB of address space");
    MPI_Finalize();
    return 0;
  }
  MPI_Datatype up, mixed;
  MPI_Aint at[BLOCKS] = {step, 2 * step, 0};
  MPI_Type_create_hvector(BLOCKS, LENGTH, step, MPI_LONG, &up);
  MPI_Type_create_hindexed_block(BLOCKS, LENGTH, at, MPI_LONG, &mixed);
  MPI_Type_commit(&up);
  MPI_Type_commit(&mixed);
  for (int k = 0; k < BLOCKS; k++) {
    long* block = (long*)(memory + k * step);
    for (int i = 0; i < LENGTH; i++) block[i] = k * 100000L + i;
    block[LENGTH] = -5;
  }
  static long flat[BLOCKS * LENGTH];
  MPI_Sendrecv(memory, 1, mixed, partner(), 0, flat, BLOCKS * LENGTH, MPI_LONG, partner(), 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < BLOCKS * LENGTH; i++) {
    long want = (i / LENGTH + 1) % BLOCKS * 100000L + i % LENGTH;
    check(flat[i] == want, "gathered element %d: %ld, not %ld", i, flat[i], want);
    flat[i] = -i;
  }
  MPI_Sendrecv(flat, BLOCKS * LENGTH, MPI_LONG, partner(), 1, memory, 1, up, partner(), 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int k = 0; k < BLOCKS; k++) {
    long* block = (long*)(memory + k * step);
    for (int i = 0; i < LENGTH; i++) {
      check(block[i] == -(k * LENGTH + i), "scattered block %d element %d: %ld", k, i, block[i]);
    }
    check(block[LENGTH] == -5, "written past block %d", k);
  }
  MPI_Type_free(&up);
  MPI_Type_free(&mixed);
  munmap(memory, bytes);
  return case_end();
}
