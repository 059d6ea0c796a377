/* A message longer than its strided receive: the error says so, nothing outside the type is
 * written, and later messages arrive as ever. ranks: 2 */
#include "case.h"

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int rows[] = {4, 800, 12000, 250000};
  for (int k = 0; k < 4; k++) {
    int n = rows[k], cells = 9 * n;
    double* array = need(cells * sizeof(double));
    MPI_Datatype narrow, wide;
    MPI_Type_vector(n, 1, 3, MPI_DOUBLE, &narrow);
    MPI_Type_vector(n, 2, 3, MPI_DOUBLE, &wide);
    MPI_Type_commit(&narrow);
    MPI_Type_commit(&wide);
    for (int i = 0; i < cells; i++) array[i] = case_rank == 0 ? i : -4;
    if (case_rank == 0) {
      MPI_Send(array, 1, wide, 1, 1, comm); /* twice what is asked for */
      MPI_Send(array, 1, narrow, 1, 2, comm);
    } else if (case_rank == 1) {
      int class;
      MPI_Error_class(MPI_Recv(array, 1, narrow, 0, 1, comm, MPI_STATUS_IGNORE), &class);
      check(class == MPI_ERR_TRUNCATE, "%d rows: error class %d", n, class);
      for (int i = 0; i < cells; i++) {
        if (i % 3 || i >= 3 * n) check(array[i] == -4, "%d rows: cell %d written", n, i);
      }
      int code = MPI_Recv(array, 1, narrow, 0, 2, comm, MPI_STATUS_IGNORE);
      check(code == MPI_SUCCESS, "%d rows: the next receive fails with %d", n, code);
      for (int i = 0; i < n; i++) check(array[3 * i] == 3 * i, "%d rows: element %d", n, i);
    }
    MPI_Type_free(&narrow);
    MPI_Type_free(&wide);
    free(array);
  }
  MPI_Comm_free(&comm);
  return case_end();
}
