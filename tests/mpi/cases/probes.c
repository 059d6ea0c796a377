/* Strided messages seen by probes of all kinds before they are received: size, source and tag are
 * right, and messages of one sender arrive in order. ranks: 2 */
#include "case.h"

enum { PROBE, IPROBE, MPROBE, IMPROBE, WAYS, MESSAGES = 3 };

static void receive(int way, double* at, MPI_Datatype type, int n, MPI_Status* status) {
  MPI_Message message = MPI_MESSAGE_NULL;
  int there = 0, count;
  switch (way) {
    case PROBE:
      MPI_Probe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, status);
      break;
    case IPROBE:
      while (!there) MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &there, status);
      break;
    case MPROBE:
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, status);
      break;
    default:
      while (!there) MPI_Improbe(0, 8, MPI_COMM_WORLD, &there, &message, status);
  }
  MPI_Get_count(status, MPI_DOUBLE, &count);
  check(count == 2 * n, "probe %d of %d blocks: %d doubles", way, n, count);
  MPI_Get_count(status, type, &count);
  check(count == 1, "probe %d of %d blocks: count %d", way, n, count);
  if (way == PROBE || way == IPROBE) {
    MPI_Recv(at, 1, type, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD, status);
  } else if (way == MPROBE) {
    MPI_Mrecv(at, 1, type, &message, status);
  } else {
    MPI_Request request;
    MPI_Imrecv(at, 1, type, &message, &request);
    MPI_Wait(&request, status);
  }
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int blocks[] = {1, 40, 1500, 200000};
  for (int way = 0; way < WAYS; way++) {
    for (int k = 0; k < 4; k++) {
      int n = blocks[k], cells = 5 * n;
      MPI_Datatype type;
      MPI_Type_vector(n, 2, 5, MPI_DOUBLE, &type);
      MPI_Type_commit(&type);
      double* arrays[MESSAGES];
      MPI_Request requests[MESSAGES];
      for (int m = 0; m < MESSAGES; m++) arrays[m] = need(cells * sizeof(double));
      for (int m = 0; m < MESSAGES && case_rank == 0; m++) {
        for (int i = 0; i < cells; i++) arrays[m][i] = m * 1e7 + i;
        MPI_Isend(arrays[m], 1, type, 1, 8, MPI_COMM_WORLD, &requests[m]);
      }
      if (case_rank == 0) MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
      for (int m = 0; m < MESSAGES && case_rank == 1; m++) {
        MPI_Status status;
        for (int i = 0; i < cells; i++) arrays[m][i] = -1;
        receive(way, arrays[m], type, n, &status);
        check(status.MPI_SOURCE == 0 && status.MPI_TAG == 8, "source %d, tag %d", status.MPI_SOURCE,
              status.MPI_TAG);
        for (int i = 0; i < cells; i++) {
          double want = i % 5 < 2 ? m * 1e7 + i : -1;
          check(arrays[m][i] == want, "way %d, message %d, cell %d: %.0f, not %.0f", way, m, i,
                arrays[m][i], want);
        }
      }
      for (int m = 0; m < MESSAGES; m++) free(arrays[m]);
      MPI_Type_free(&type);
    }
  }
  return case_end();
}
