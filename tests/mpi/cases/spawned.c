/* Processes started by MPI_Comm_spawn exchange columns with those that started them. ranks: 2 */
#include "case.h"

enum { ROWS = 50000, PITCH = 4, CHILDREN = 2 };
static double a[ROWS * PITCH], b[ROWS * PITCH];

/* Each process of one group exchanges with that of the same rank in the other. */
static void exchange(MPI_Comm between, int rank, int parent) {
  MPI_Datatype column;
  const int rows[] = {5, 900, ROWS};
  for (int k = 0; k < 3; k++) {
    MPI_Type_vector(rows[k], 1, PITCH, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROWS * PITCH; i++) {
      a[i] = i + (parent ? 0.5 : 0.25) + 1e6 * rank;
      b[i] = -1;
    }
    MPI_Request requests[2];
    MPI_Irecv(b, 1, column, rank, k, between, &requests[0]);
    MPI_Isend(a, 1, column, rank, k, between, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ROWS * PITCH; i++) {
      double want = i % PITCH || i >= rows[k] * PITCH ? -1 : i + (parent ? 0.25 : 0.5) + 1e6 * rank;
      check(b[i] == want, "%s: %d rows, cell %d: %g, not %g", parent ? "parent" : "child", rows[k],
            i, b[i], want);
    }
    MPI_Type_free(&column);
  }
}

int main(int argc, char** argv) {
  MPI_Comm parents, children;
  case_begin(&argc, &argv);
  MPI_Comm_get_parent(&parents);
  if (parents != MPI_COMM_NULL) {
    exchange(parents, case_rank, 0);
    int all;
    MPI_Allreduce(&case_wrong, &all, 1, MPI_INT, MPI_SUM, parents); /* the parents learn our sum */
    MPI_Comm_disconnect(&parents);
    MPI_Finalize();
    return 0;
  }
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, info, 0, MPI_COMM_WORLD, &children,
                 MPI_ERRCODES_IGNORE);
  MPI_Info_free(&info);
  exchange(children, case_rank, 1);
  int of_children;
  MPI_Allreduce(&case_wrong, &of_children, 1, MPI_INT, MPI_SUM, children);
  check(of_children == 0, "the spawned processes found %d wrong cells", of_children);
  MPI_Comm_disconnect(&children);
  return case_end();
}
