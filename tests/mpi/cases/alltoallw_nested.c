/* MPI_Alltoallw and MPI_Neighbor_alltoallw with a different nested type for each partner.
 * ranks: 2 to 4 */
#include "case.h"

enum { SIDE = 96 };

/* A block of columns of a square matrix: `wide` columns from `first`, each an element of its own,
 * in pieces of two rows. */
static MPI_Datatype columns(int wide) {
  MPI_Datatype two, pitch, column, narrow, all;
  MPI_Type_create_hvector(2, 1, SIDE * sizeof(double), MPI_DOUBLE, &two);
  MPI_Type_create_resized(two, 0, 2 * SIDE * sizeof(double), &pitch);
  MPI_Type_contiguous(SIDE / 2, pitch, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &narrow);
  MPI_Type_contiguous(wide, narrow, &all);
  MPI_Type_commit(&all);
  MPI_Type_free(&two);
  MPI_Type_free(&pitch);
  MPI_Type_free(&column);
  MPI_Type_free(&narrow);
  return all;
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  int np = case_ranks, wide = SIDE / np;
  static double a[SIDE * SIDE], b[SIDE * SIDE];
  MPI_Datatype *out = need(np * sizeof *out), *in = need(np * sizeof *in), row;
  int *ones = need(np * sizeof(int)), *from = need(np * sizeof(int)), *to = need(np * sizeof(int));
  MPI_Type_contiguous(SIDE, MPI_DOUBLE, &row);
  for (int p = 0; p < np; p++) {
    /* To rank p goes the p-th block of columns; what comes from p fills the p-th block of rows. */
    ones[p] = 1;
    out[p] = columns(wide);
    MPI_Type_contiguous(wide, row, &in[p]);
    MPI_Type_commit(&in[p]);
    from[p] = p * wide * (int)sizeof(double);
    to[p] = p * wide * SIDE * (int)sizeof(double);
  }
  MPI_Type_free(&row);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < SIDE * SIDE; i++) {
      a[i] = round * 1e7 + case_rank * 1e5 + i;
      b[i] = -1;
    }
    MPI_Alltoallw(a, ones, from, out, b, ones, to, in, MPI_COMM_WORLD);
    /* Row r of b is column (my block's first + r within the block) of the sender's matrix. */
    for (int r = 0; r < wide * np; r++) {
      for (int c = 0; c < SIDE; c++) {
        int column = case_rank * wide + r % wide;
        double want = round * 1e7 + (double)(r / wide) * 1e5 + c * SIDE + column;
        check(b[r * SIDE + c] == want, "row %d column %d: %.0f, not %.0f", r, c, b[r * SIDE + c],
              want);
      }
    }
  }

  int size[] = {np}, circle[] = {1};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, size, circle, 0, &ring);
  MPI_Datatype left_right[] = {out[0], out[0]};
  int two_ones[] = {1, 1};
  MPI_Aint send_at[] = {0, (SIDE - wide) * (MPI_Aint)sizeof(double)},
           recv_at[] = {(SIDE - wide) * (MPI_Aint)sizeof(double), 0};
  for (int i = 0; i < SIDE * SIDE; i++) b[i] = -1;
  /* With two ranks both neighbours are the same one: what goes left first arrives from the left. */
  if (np == 2) recv_at[0] = send_at[0], recv_at[1] = send_at[1];
  MPI_Neighbor_alltoallw(a, two_ones, send_at, left_right, b, two_ones, np == 2 ? send_at : recv_at,
                         left_right, ring);
  int got = 0;
  for (int i = 0; i < SIDE * SIDE; i++) {
    int edge = i % SIDE < wide || i % SIDE >= SIDE - wide;
    check(edge ? b[i] >= 0 : b[i] == -1, "ring: cell %d is %.0f", i, b[i]);
    got += b[i] >= 0;
  }
  check(got == SIDE * (np == 1 ? wide : 2 * wide), "ring: %d cells", got);
  MPI_Comm_free(&ring);
  for (int p = 0; p < np; p++) {
    MPI_Type_free(&out[p]);
    MPI_Type_free(&in[p]);
  }
  free(out);
  free(in);
  free(ones);
  free(from);
  free(to);
  return case_end();
}
