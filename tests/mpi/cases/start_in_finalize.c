/* Persistent requests of a column, made before, are started while MPI_Finalize deletes the
 * attributes of MPI_COMM_SELF: MPI is still there, and so is what the requests need. ranks: 2 */
#include "case.h"

enum { sizes = 3, stride = 5 };
static const int rows[sizes] = {40, 3000, 200000};
static MPI_Request requests[sizes][2];
static double *sent[sizes], *received[sizes];

static int exchange(MPI_Comm comm, int keyval, void* value, void* state) {
  (void)comm, (void)keyval, (void)value, (void)state;
  for (int k = 0; k < sizes; k++) {
    MPI_Startall(2, requests[k]);
    MPI_Waitall(2, requests[k], MPI_STATUSES_IGNORE);
    for (int i = 0; i < rows[k]; i++) {
      double expected = 1000000.0 * partner() + i;
      check(received[k][(size_t)stride * i] == expected, "%d rows: row %d", rows[k], i);
    }
    MPI_Request_free(&requests[k][0]);
    MPI_Request_free(&requests[k][1]);
  }
  int all = 0;
  MPI_Allreduce(&case_wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  case_wrong = all;
  if (case_rank == 0) puts(all ? "WRONG" : "OK");
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  if (case_rank < 2) {
    for (int k = 0; k < sizes; k++) {
      MPI_Datatype column;
      MPI_Type_vector(rows[k], 1, stride, MPI_DOUBLE, &column);
      MPI_Type_commit(&column);
      sent[k] = need((size_t)stride * rows[k] * sizeof(double));
      received[k] = need((size_t)stride * rows[k] * sizeof(double));
      for (int i = 0; i < rows[k]; i++) sent[k][(size_t)stride * i] = 1000000.0 * case_rank + i;
      MPI_Send_init(sent[k], 1, column, partner(), k, MPI_COMM_WORLD, &requests[k][0]);
      MPI_Recv_init(received[k], 1, column, partner(), k, MPI_COMM_WORLD, &requests[k][1]);
      MPI_Type_free(&column);
    }
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, exchange, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    MPI_Comm_free_keyval(&keyval);
  }
  MPI_Finalize();
  for (int k = 0; k < sizes; k++) {
    free(sent[k]);
    free(received[k]);
  }
  return case_wrong != 0;
}
