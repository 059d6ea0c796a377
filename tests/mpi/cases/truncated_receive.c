/* A message longer than its strided receive: the error says so, nothing outside the type is
 * written, and later messages arrive as ever. ranks: 2 */
#include "case.h"

/* Receives by MPI_Recv, or matched before by MPI_Mprobe, blocking or not. */
static int receive(int how, void* buffer, MPI_Datatype type, int tag, MPI_Comm comm) {
  if (how == 0) return MPI_Recv(buffer, 1, type, 0, tag, comm, MPI_STATUS_IGNORE);
  MPI_Message message;
  MPI_Mprobe(0, tag, comm, &message, MPI_STATUS_IGNORE);
  if (how == 1) return MPI_Mrecv(buffer, 1, type, &message, MPI_STATUS_IGNORE);
  MPI_Request request;
  int code = MPI_Imrecv(buffer, 1, type, &message, &request);
  return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int rows[] = {4, 800, 12000, 250000};
  for (int k = 0; k < 12; k++) {
    int n = rows[k % 4], how = k / 4, cells = 9 * n;
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
      MPI_Error_class(receive(how, array, narrow, 1, comm), &class);
      check(class == MPI_ERR_TRUNCATE, "%d rows, %d: error class %d", n, how, class);
      for (int i = 0; i < cells; i++) {
        if (i % 3 || i >= 3 * n) check(array[i] == -4, "%d rows: cell %d written", n, i);
      }
      int code = receive(how, array, narrow, 2, comm);
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
