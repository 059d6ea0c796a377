/* Vectors that walk down in memory, to and from an array in order: the packed order is that of the
 * walk, and the bytes between the blocks stay as they were. ranks: 2 */
#include "case.h"

static void walk(int rows, int width, int pitch, int large_block) {
  long cells = (long)rows * pitch;
  double* grid = need(cells * sizeof(double));
  double* line = need((long)rows * width * sizeof(double));
  double* top = grid + (long)(rows - 1) * pitch; /* the first block is the highest one */
  MPI_Datatype down;
  if (large_block) {
    MPI_Type_create_hvector(rows, width, -(MPI_Aint)pitch * (MPI_Aint)sizeof(double), MPI_DOUBLE,
                            &down);
  } else {
    MPI_Type_vector(rows, width, -pitch, MPI_DOUBLE, &down);
  }
  MPI_Type_commit(&down);

  for (long i = 0; i < cells; i++) grid[i] = i + 0.25 * case_rank;
  MPI_Sendrecv(top, 1, down, partner(), 11, line, rows * width, MPI_DOUBLE, partner(), 11,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int r = 0; r < rows; r++) {
    for (int c = 0; c < width; c++) {
      double want = (double)(rows - 1 - r) * pitch + c + 0.25 * partner();
      check(line[r * width + c] == want, "row %d column %d of %d: %g, not %g", r, c, rows,
            line[r * width + c], want);
    }
  }
  for (long i = 0; i < cells; i++) grid[i] = -1;
  MPI_Sendrecv(line, rows * width, MPI_DOUBLE, partner(), 12, top, 1, down, partner(), 12,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* What went down comes back up: every cell holds its own number again. */
  for (long i = 0; i < cells; i++) {
    double want = i % pitch < width ? i + 0.25 * case_rank : -1;
    check(grid[i] == want, "cell %ld of %ld: %g, not %g", i, cells, grid[i], want);
  }
  MPI_Type_free(&down);
  free(grid);
  free(line);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  walk(1, 1, 2, 0);
  walk(9, 2, 4, 0);
  walk(700, 1, 3, 1);
  walk(40000, 2, 5, 0);
  walk(6, 30000, 30010, 1);
  return case_end();
}
