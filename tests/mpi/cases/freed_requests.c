/* Sends whose request and datatype are given up at once: each still carries its own data, received
 * in another order than sent. ranks: 2 */
#include "case.h"

enum { MESSAGES = 20 };

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int rows[] = {6, 3000, 60000};
  for (int k = 0; k < 3; k++) {
    int n = rows[k];
    if (case_rank == 0) {
      double* arrays[MESSAGES];
      for (int m = 0; m < MESSAGES; m++) {
        int pitch = 2 + m % 3;
        arrays[m] = need((size_t)n * pitch * sizeof(double));
        for (int i = 0; i < n * pitch; i++) arrays[m][i] = m * 1e6 + i / pitch;
        MPI_Datatype type;
        MPI_Request request;
        MPI_Type_vector(n, 1, pitch, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        if (m % 2) {
          MPI_Isend(arrays[m], 1, type, 1, m, MPI_COMM_WORLD, &request);
        } else {
          MPI_Issend(arrays[m], 1, type, 1, m, MPI_COMM_WORLD, &request);
        }
        MPI_Request_free(&request);
        MPI_Type_free(&type);
      }
      MPI_Recv(NULL, 0, MPI_INT, 1, 500, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int m = 0; m < MESSAGES; m++) free(arrays[m]);
    } else if (case_rank == 1) {
      double* line = need((size_t)n * sizeof(double));
      for (int j = 0; j < MESSAGES; j++) {
        int m = j * 7 % MESSAGES; /* 7 and 20 have no common divisor: every message once */
        MPI_Recv(line, n, MPI_DOUBLE, 0, m, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) {
          check(line[i] == m * 1e6 + i, "message %d of %d rows, element %d: %.0f", m, n, i,
                line[i]);
        }
      }
      MPI_Send(NULL, 0, MPI_INT, 0, 500, MPI_COMM_WORLD);
      free(line);
    }
  }
  return case_end();
}
