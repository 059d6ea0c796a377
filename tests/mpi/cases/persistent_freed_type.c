/* Persistent requests outlive their datatype: it is freed before the first start, and other types
 * are made, used and freed between the starts. ranks: 2 */
#include "case.h"

enum { ROWS = 900, PITCH = 5 };
static double a[ROWS * PITCH], b[ROWS * PITCH], scratch[256], unused[256];

static void disturb(int round) {
  for (int k = 1; k < 40; k++) {
    MPI_Datatype other;
    MPI_Type_vector(k, 1, 1 + k % 5, MPI_DOUBLE, &other);
    MPI_Type_commit(&other);
    MPI_Request requests[2];
    MPI_Irecv(unused, 1, other, case_rank, round, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(scratch, 1, other, case_rank, round, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&other);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Datatype column, pair;
  int at[] = {0, 3};
  MPI_Type_vector(ROWS, 1, PITCH, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, sizeof(double), &pair);
  MPI_Type_free(&column);
  MPI_Type_create_indexed_block(2, 1, at, pair, &column); /* columns 0 and 3 */
  MPI_Type_commit(&column);
  MPI_Request requests[2];
  MPI_Recv_init(b, 1, column, partner(), 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Ssend_init(a, 1, column, partner(), 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&column);
  MPI_Type_free(&pair);
  for (int round = 0; round < 8; round++) {
    disturb(100 + round);
    for (int i = 0; i < ROWS * PITCH; i++) {
      a[i] = round * 1e6 + i + 0.5 * case_rank;
      b[i] = -3;
    }
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ROWS * PITCH; i++) {
      int sent = i % PITCH == 0 || i % PITCH == 3;
      double want = sent ? round * 1e6 + i + 0.5 * partner() : -3;
      check(b[i] == want, "round %d, cell %d: %g, not %g", round, i, b[i], want);
    }
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  return case_end();
}
