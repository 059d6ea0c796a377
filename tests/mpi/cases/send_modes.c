/* Every mode of sending a strided block of rows: buffered ones may be overwritten at once. ranks: 2
 */
#include "case.h"

enum { PLAIN, SYNCHRONOUS, BUFFERED, READY, IPLAIN, ISYNCHRONOUS, IBUFFERED, IREADY, MODES };

static void send_by(int mode, int* at, MPI_Datatype type, int tag, int cells) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm comm = MPI_COMM_WORLD;
  if (mode == READY || mode == IREADY) MPI_Recv(NULL, 0, MPI_INT, 1, 999, comm, MPI_STATUS_IGNORE);
  switch (mode) {
    case PLAIN:
      MPI_Send(at, 1, type, 1, tag, comm);
      break;
    case SYNCHRONOUS:
      MPI_Ssend(at, 1, type, 1, tag, comm);
      break;
    case BUFFERED:
      MPI_Bsend(at, 1, type, 1, tag, comm);
      break;
    case READY:
      MPI_Rsend(at, 1, type, 1, tag, comm);
      break;
    case IPLAIN:
      MPI_Isend(at, 1, type, 1, tag, comm, &request);
      break;
    case ISYNCHRONOUS:
      MPI_Issend(at, 1, type, 1, tag, comm, &request);
      break;
    case IBUFFERED:
      MPI_Ibsend(at, 1, type, 1, tag, comm, &request);
      break;
    default:
      MPI_Irsend(at, 1, type, 1, tag, comm, &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < cells; i++) at[i] = -77; /* the call is over: the memory is ours again */
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int rows[] = {2, 700, 9000, 150000};
  for (int k = 0; k < 4; k++) {
    int cells = rows[k] * 6, packed;
    int* array = need(cells * sizeof(int));
    MPI_Datatype type;
    MPI_Type_vector(rows[k], 4, 6, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Pack_size(1, type, MPI_COMM_WORLD, &packed);
    int room = 2 * (packed + MPI_BSEND_OVERHEAD), size;
    void *pool = need(room), *old;
    MPI_Buffer_attach(pool, room);
    for (int mode = 0; mode < MODES; mode++) {
      int tag = 10 * k + mode;
      for (int i = 0; i < cells; i++) array[i] = case_rank == 0 ? i + tag : -1;
      if (case_rank == 0) {
        send_by(mode, array, type, tag, cells);
      } else if (case_rank == 1) {
        MPI_Request request;
        MPI_Irecv(array, 1, type, 0, tag, MPI_COMM_WORLD, &request);
        if (mode == READY || mode == IREADY) MPI_Send(NULL, 0, MPI_INT, 0, 999, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < cells; i++) {
          check(array[i] == (i % 6 < 4 ? i + tag : -1), "mode %d, cell %d of %d: %d", mode, i,
                cells, array[i]);
        }
      }
    }
    MPI_Buffer_detach(&old, &size);
    MPI_Type_free(&type);
    free(pool);
    free(array);
  }
  return case_end();
}
