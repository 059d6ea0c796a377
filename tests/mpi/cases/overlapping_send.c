/* A sender may name the same memory several times: stride zero, sliding windows, blocks repeated in
 * an index. ranks: 2 */
#include "case.h"

enum { N = 5000 };
static int source[N + 64], target[8 * N];

static int expected(int* out, int slides) {
  int n = 0;
  for (int i = 0; i < slides; i++) { /* the window moves by one */
    for (int j = 0; j < 4; j++) out[n++] = source[i + j];
  }
  for (int i = 0; i < 3; i++) out[n++] = source[7]; /* stride zero */
  for (int i = 0; i < 2; i++) {                     /* the same blocks twice */
    for (int j = 0; j < 5; j++) out[n++] = source[20 + j];
    for (int j = 0; j < 2; j++) out[n++] = source[22 + j];
  }
  return n;
}

static void overlap(int slides) {
  static int want[8 * N];
  MPI_Datatype window, same, twice, all;
  int lengths[] = {5, 2, 5, 2}, at[] = {20, 22, 20, 22}, ones[] = {1, 1, 1};
  MPI_Aint zero[] = {0, 7 * sizeof(int), 0};
  MPI_Type_vector(slides, 4, 1, MPI_INT, &window);
  MPI_Type_create_hvector(3, 1, 0, MPI_INT, &same);
  MPI_Type_indexed(4, lengths, at, MPI_INT, &twice);
  MPI_Datatype members[] = {window, same, twice};
  MPI_Type_create_struct(3, ones, zero, members, &all);
  MPI_Type_commit(&all);
  for (int i = 0; i < N + 64; i++) source[i] = 3 * i + 1;
  for (int i = 0; i < 8 * N; i++) target[i] = -9;
  int n = expected(want, slides), size;
  MPI_Type_size(all, &size);
  check(size == n * (int)sizeof(int), "size %d, not %d", size, n * (int)sizeof(int));
  MPI_Sendrecv(source, 1, all, partner(), 0, target, 8 * N, MPI_INT, partner(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < n; i++) {
    check(target[i] == want[i], "element %d of %d: %d, not %d", i, n, target[i], want[i]);
  }
  check(target[n] == -9, "written past the end");
  MPI_Type_free(&window);
  MPI_Type_free(&same);
  MPI_Type_free(&twice);
  MPI_Type_free(&all);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  overlap(1);
  overlap(50);
  overlap(N);
  return case_end();
}
