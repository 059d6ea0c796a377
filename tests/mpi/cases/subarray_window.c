/* Boxes of a three-dimensional array, sent from one place and received in another, in both storage
 * orders; everything outside the box stays. ranks: 2 */
#include "case.h"

static long cell(const int* sizes, int x, int y, int z, int order) {
  return order == MPI_ORDER_C ? ((long)x * sizes[1] + y) * sizes[2] + z
                              : x + (long)sizes[0] * (y + (long)sizes[1] * z);
}

static void boxes(const int* sizes, const int* box, const int* from, const int* to, int order) {
  long cells = (long)sizes[0] * sizes[1] * sizes[2];
  float *a = need(cells * sizeof(float)), *b = need(cells * sizeof(float)),
        *want = need(cells * sizeof(float));
  MPI_Datatype out, in;
  MPI_Type_create_subarray(3, sizes, box, from, order, MPI_FLOAT, &out);
  MPI_Type_create_subarray(3, sizes, box, to, order, MPI_FLOAT, &in);
  MPI_Type_commit(&out);
  MPI_Type_commit(&in);
  for (long i = 0; i < cells; i++) {
    a[i] = (float)i;
    b[i] = want[i] = -2;
  }
  for (int x = 0; x < box[0]; x++) {
    for (int y = 0; y < box[1]; y++) {
      for (int z = 0; z < box[2]; z++) {
        want[cell(sizes, to[0] + x, to[1] + y, to[2] + z, order)] =
            (float)cell(sizes, from[0] + x, from[1] + y, from[2] + z, order);
      }
    }
  }
  MPI_Request requests[2];
  MPI_Irecv(b, 1, in, partner(), 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(a, 1, out, partner(), 3, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (long i = 0; i < cells; i++) {
    check(b[i] == want[i], "order %d, cell %ld: %g, not %g", order, i, b[i], want[i]);
  }
  MPI_Type_free(&out);
  MPI_Type_free(&in);
  free(a);
  free(b);
  free(want);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int orders[] = {MPI_ORDER_C, MPI_ORDER_FORTRAN};
  const int small[] = {6, 9, 7}, small_box[] = {2, 3, 4}, a[] = {1, 5, 2}, b[] = {4, 0, 3};
  const int large[] = {70, 66, 68}, face[] = {64, 64, 2}, edge[] = {64, 1, 1}, slab[] = {2, 64, 64};
  const int low[] = {1, 1, 1}, high[] = {5, 2, 66};
  const int low_slab[] = {1, 1, 1}, high_slab[] = {67, 2, 3};
  for (int o = 0; o < 2; o++) {
    boxes(small, small_box, a, b, orders[o]);
    boxes(large, face, low, high, orders[o]);
    boxes(large, edge, low, high, orders[o]);
    boxes(large, slab, low_slab, high_slab, orders[o]);
  }
  return case_end();
}
