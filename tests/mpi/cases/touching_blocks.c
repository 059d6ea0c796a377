/* Blocks of an element that itself has holes: some touch one another, and joining them must keep
 * the holes. ranks: 2 */
#include "case.h"

enum { CELLS = 4096 };

static void holes(MPI_Datatype type, const int* elements, int n, int pitch, const int* hole_free,
                  int per_element) {
  static int array[CELLS], want[CELLS], line[CELLS];
  int at = 0;
  for (int i = 0; i < CELLS; i++) {
    array[i] = i;
    line[i] = -1;
    want[i] = -2;
  }
  MPI_Sendrecv(array, 1, type, partner(), 0, line, CELLS, MPI_INT, partner(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int e = 0; e < n; e++) {
    for (int k = 0; k < per_element; k++) {
      int cell = elements[e] * pitch + hole_free[k];
      check(line[at] == cell, "packed %d: %d, not %d", at, line[at], cell);
      want[cell] = cell;
      at++;
    }
  }
  check(line[at] == -1, "%d elements, and more", at);
  for (int i = 0; i < CELLS; i++) array[i] = -2;
  MPI_Sendrecv(line, at, MPI_INT, partner(), 1, array, 1, type, partner(), 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < CELLS; i++) {
    check(array[i] == want[i], "cell %d: %d, not %d", i, array[i], want[i]);
  }
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int kept[] = {0, 1, 3};
  const int lengths[] = {2, 3, 1, 4}, at[] = {0, 2, 9, 5},
            elements[] = {0, 1, 2, 3, 4, 9, 5, 6, 7, 8};
  const int pairs_at[] = {6, 0, 2, 12}, pairs[] = {6, 7, 0, 1, 2, 3, 12, 13};
  MPI_Datatype tight, loose, type;
  int inner_lengths[] = {2, 1}, inner_at[] = {0, 3};
  MPI_Type_indexed(2, inner_lengths, inner_at, MPI_INT, &tight); /* extent of 4 cells */
  MPI_Type_create_resized(tight, 0, 7 * sizeof(int), &loose);
  MPI_Datatype inner[] = {tight, loose};
  const int pitch[] = {4, 7};
  for (int k = 0; k < 2; k++) {
    MPI_Type_indexed(4, lengths, at, inner[k], &type);
    MPI_Type_commit(&type);
    holes(type, elements, 10, pitch[k], kept, 3);
    MPI_Type_free(&type);
    MPI_Type_create_indexed_block(4, 2, pairs_at, inner[k], &type);
    MPI_Type_commit(&type);
    holes(type, pairs, 8, pitch[k], kept, 3);
    MPI_Type_free(&type);
  }
  MPI_Type_free(&tight);
  MPI_Type_free(&loose);
  return case_end();
}
