/* Two halves of a job that know each other only by MPI_Comm_connect and MPI_Comm_accept exchange
 * columns. ranks: 2 */
#include "case.h"

enum { ROWS = 40000, PITCH = 3 };
static double a[ROWS * PITCH], b[ROWS * PITCH];

int main(int argc, char** argv) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  case_begin(&argc, &argv);
  if (case_rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (case_rank == 0) {
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else {
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  }
  const int rows[] = {3, 1100, ROWS};
  for (int k = 0; k < 3; k++) {
    MPI_Datatype column;
    MPI_Type_vector(rows[k], 1, PITCH, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROWS * PITCH; i++) {
      a[i] = i + 0.5 * case_rank;
      b[i] = -1;
    }
    MPI_Sendrecv(a, 1, column, 0, k, b, 1, column, 0, k, other, MPI_STATUS_IGNORE);
    for (int i = 0; i < ROWS * PITCH; i++) {
      double want = i % PITCH || i >= rows[k] * PITCH ? -1 : i + 0.5 * partner();
      check(b[i] == want, "%d rows, cell %d: %g, not %g", rows[k], i, b[i], want);
    }
    MPI_Type_free(&column);
  }
  MPI_Comm_disconnect(&other);
  if (case_rank == 0) MPI_Close_port(port);
  return case_end();
}
