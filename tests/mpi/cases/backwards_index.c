/* Indexed types of indexed types, all displacements out of order, received several in a row.
 * ranks: 2 */
#include "case.h"

enum { INNER = 5, OUTER = 3, PITCH = 40 };
static const int inner_lengths[] = {1, 2, 1, 1}, inner_at[] = {7, 2, 9, 0};
static const int inner_cells[INNER] = {7, 2, 3, 9, 0}; /* within an extent of 10 */
static const int outer_at[OUTER] = {3, 0, 1};

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Datatype inner, outer, type;
  MPI_Type_indexed(4, inner_lengths, inner_at, MPI_DOUBLE, &inner);
  MPI_Type_create_indexed_block(OUTER, 1, outer_at, inner, &outer);
  MPI_Aint lb, extent;
  MPI_Type_get_extent(inner, &lb, &extent);
  check(lb == 0 && extent == 10 * (MPI_Aint)sizeof(double), "inner extent %ld", (long)extent);
  MPI_Type_get_extent(outer, &lb, &extent);
  check(lb == 0 && extent == PITCH * (MPI_Aint)sizeof(double), "outer extent %ld", (long)extent);
  MPI_Type_dup(outer, &type);
  MPI_Type_commit(&type);
  const int counts[] = {1, 7, 300, 20000};
  for (int k = 0; k < 4; k++) {
    int n = counts[k], packed = n * INNER * OUTER, cells = n * PITCH, at = 0;
    double *line = need(packed * sizeof(double)), *field = need(cells * sizeof(double)),
           *want = need(cells * sizeof(double));
    for (int i = 0; i < packed; i++) line[i] = i + 0.5 * case_rank;
    for (int i = 0; i < cells; i++) field[i] = want[i] = -1;
    for (int e = 0; e < n; e++) {
      for (int o = 0; o < OUTER; o++) {
        for (int i = 0; i < INNER; i++) {
          want[e * PITCH + outer_at[o] * 10 + inner_cells[i]] = at++ + 0.5 * partner();
        }
      }
    }
    MPI_Sendrecv(line, packed, MPI_DOUBLE, partner(), 0, field, n, type, partner(), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < cells; i++) {
      check(field[i] == want[i], "%d: cell %d: %g, not %g", n, i, field[i], want[i]);
    }
    MPI_Sendrecv(field, n, type, partner(), 1, line, packed, MPI_DOUBLE, partner(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < packed; i++) {
      check(line[i] == i + 0.5 * case_rank, "%d: packed %d: %g", n, i, line[i]);
    }
    free(line);
    free(field);
    free(want);
  }
  MPI_Type_free(&inner);
  MPI_Type_free(&outer);
  MPI_Type_free(&type);
  return case_end();
}
