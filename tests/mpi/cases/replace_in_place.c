/* MPI_Sendrecv_replace of strided data with the partner and with oneself. ranks: 2 */
#include "case.h"

static void swap_with(int other, int blocks) {
  int cells = blocks * 7;
  int* array = need(cells * sizeof(int));
  MPI_Datatype type;
  MPI_Type_vector(blocks, 3, 7, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < cells; i++) array[i] = 2 * i + case_rank;
  MPI_Status status;
  int count;
  MPI_Sendrecv_replace(array, 1, type, other, 5, other, 5, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  check(count == 3 * blocks, "%d blocks: count %d", blocks, count);
  for (int i = 0; i < cells; i++) {
    int want = 2 * i + (i % 7 < 3 ? other : case_rank);
    check(array[i] == want, "%d blocks, cell %d: %d, not %d", blocks, i, array[i], want);
  }
  MPI_Type_free(&type);
  free(array);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int blocks[] = {1, 13, 341, 342, 343, 2000, 5461, 70001};
  for (int k = 0; k < (int)(sizeof blocks / sizeof *blocks); k++) {
    swap_with(partner(), blocks[k]);
    swap_with(case_rank, blocks[k]);
  }
  return case_end();
}
