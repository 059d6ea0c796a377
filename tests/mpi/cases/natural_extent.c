/* Arrays of C structs sent with a struct type whose padding at the end nobody spelled out: extents
 * are those of the compiler, also with members that are derived themselves. ranks: 2 */
#include <stddef.h>

#include "case.h"

struct point {
  double x;
  float weight;
};
struct cell {
  char kind;
  struct point corners[3];
  short material;
  char mark;
};
enum { N = 4000 };
static struct cell a[N], b[N];

static void extent_is(const char* what, MPI_Datatype type, size_t size) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(type, &lb, &extent);
  check(lb == 0 && extent == (MPI_Aint)size, "%s: lower bound %ld, extent %ld, size %zu", what,
        (long)lb, (long)extent, size);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Datatype number, letter, point, cell;
  MPI_Type_dup(MPI_DOUBLE, &number);
  MPI_Type_contiguous(1, MPI_CHAR, &letter);
  int ones[] = {1, 1};
  MPI_Aint in_point[] = {offsetof(struct point, x), offsetof(struct point, weight)};
  MPI_Datatype point_kinds[] = {number, MPI_FLOAT};
  MPI_Type_create_struct(2, ones, in_point, point_kinds, &point);
  extent_is("point", point, sizeof(struct point));
  int lengths[] = {1, 3, 1, 1};
  MPI_Aint in_cell[] = {offsetof(struct cell, kind), offsetof(struct cell, corners),
                        offsetof(struct cell, material), offsetof(struct cell, mark)};
  MPI_Datatype cell_kinds[] = {letter, point, MPI_SHORT, MPI_CHAR};
  MPI_Type_create_struct(4, lengths, in_cell, cell_kinds, &cell);
  extent_is("cell", cell, sizeof(struct cell));
  MPI_Type_commit(&cell);

  memset(b, 0x11, sizeof b);
  for (int i = 0; i < N; i++) {
    a[i].kind = (char)i;
    a[i].material = (short)(i * 3);
    a[i].mark = (char)(i / 7);
    for (int k = 0; k < 3; k++) a[i].corners[k] = (struct point){i + k * 0.25, (float)(i - k)};
  }
  MPI_Sendrecv(a, N, cell, partner(), 0, b, N, cell, partner(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < N; i++) {
    int right = b[i].kind == a[i].kind && b[i].material == a[i].material && b[i].mark == a[i].mark;
    for (int k = 0; k < 3; k++) {
      right = right && b[i].corners[k].x == a[i].corners[k].x &&
              b[i].corners[k].weight == a[i].corners[k].weight;
    }
    check(right, "cell %d", i);
  }
  MPI_Type_free(&number);
  MPI_Type_free(&letter);
  MPI_Type_free(&point);
  MPI_Type_free(&cell);
  return case_end();
}
