/* A matrix dealt out in square blocks with MPI_Scatterv and collected with MPI_Gatherv: the block's
 * extent is shrunk so that displacements count blocks. ranks: 2 to 4 */
#include "case.h"

static void deal(int blocks_down, int side) {
  int np = case_ranks, rows = blocks_down * side, columns = np * side;
  long cells = (long)rows * columns;
  double *matrix = need(cells * sizeof(double)), *back = need(cells * sizeof(double)),
         *mine = need((long)rows * side * sizeof(double));
  int sizes[] = {rows, columns}, part[] = {rows, side}, start[] = {0, 0};
  MPI_Datatype strip, block;
  MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &strip);
  MPI_Type_create_resized(strip, 0, side * sizeof(double), &block);
  MPI_Type_commit(&block);
  MPI_Type_free(&strip);
  int *ones = need(np * sizeof(int)), *at = need(np * sizeof(int));
  for (int p = 0; p < np; p++) {
    ones[p] = 1;
    at[p] = np - 1 - p; /* the last strip for the first rank */
  }
  for (long i = 0; i < cells; i++) {
    matrix[i] = (double)i;
    back[i] = -1;
  }
  MPI_Scatterv(matrix, ones, at, block, mine, rows * side, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < side; c++) {
      double want = (double)r * columns + (np - 1 - case_rank) * side + c;
      check(mine[r * side + c] == want, "row %d column %d: %g, not %g", r, c, mine[r * side + c],
            want);
      mine[r * side + c] *= 2;
    }
  }
  MPI_Gatherv(mine, rows * side, MPI_DOUBLE, back, ones, at, block, 0, MPI_COMM_WORLD);
  for (long i = 0; i < cells && case_rank == 0; i++) {
    check(back[i] == 2.0 * i, "gathered cell %ld: %g", i, back[i]);
  }
  MPI_Type_free(&block);
  free(matrix);
  free(back);
  free(mine);
  free(ones);
  free(at);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  deal(1, 3);
  deal(2, 40);
  deal(3, 260);
  return case_end();
}
