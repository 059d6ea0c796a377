/* Columns of matrices whose rows are a power of two, and columns longer than the processor
 * remembers pages: around the sizes at which they go in other pieces or by rendezvous, in every way
 * of sending, received in time and late, as columns and flat. ranks: 2 */
#include "case.h"

enum { MANNERS = 4, UNDER_WAY = 2 };

struct shape {
  int blocks, block, stride;
};

static unsigned char value(int sender, int round, long at) {
  return (unsigned char)(sender * 37 + round * 101 + at * 7 + (at >> 8));
}

static void send(unsigned char* from, MPI_Datatype type, int manner, int tag,
                 MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  if (manner == 0) MPI_Isend(from, 1, type, partner(), tag, MPI_COMM_WORLD, request);
  if (manner == 1) MPI_Issend(from, 1, type, partner(), tag, MPI_COMM_WORLD, request);
  if (manner == 2) MPI_Send_init(from, 1, type, partner(), tag, MPI_COMM_WORLD, request);
  if (manner == 3) MPI_Ssend_init(from, 1, type, partner(), tag, MPI_COMM_WORLD, request);
  if (manner >= 2) MPI_Start(request);
}

/* Bytes of the column hold what the other one sent, and those between them what they held. */
static void look(const unsigned char* got, struct shape s, int flat, int round, const char* how) {
  int step = flat ? s.block : s.stride;
  long wrong = 0, at = 0;
  for (int k = 0; k < s.blocks; k++, got += step) {
    for (int i = 0; i < s.block; i++) wrong += got[i] != value(partner(), round, at++);
    for (int i = s.block; i < step && k + 1 < s.blocks; i++) wrong += got[i] != 0xee;
  }
  check(wrong == 0, "%d x %d / %d, %s: %ld bytes are wrong", s.blocks, s.block, s.stride, how,
        wrong);
}

static void exchange(struct shape s, int flat, int late, int manner) {
  long bytes = (long)s.blocks * s.block, reach = (long)(s.blocks - 1) * s.stride + s.block;
  long room = flat ? bytes : reach;
  char how[80];
  snprintf(how, sizeof how, "%s, received %s, manner %d", flat ? "flat" : "as a column",
           late ? "late" : "in time", manner);
  MPI_Datatype column, target;
  MPI_Type_vector(s.blocks, s.block, s.stride, MPI_BYTE, &column);
  MPI_Type_commit(&column);
  MPI_Type_contiguous((int)bytes, MPI_BYTE, &target);
  MPI_Type_commit(&target);
  unsigned char *from[UNDER_WAY], *to[UNDER_WAY];
  MPI_Request sends[UNDER_WAY], receives[UNDER_WAY];
  for (int k = 0; k < UNDER_WAY; k++) {
    from[k] = need(reach);
    to[k] = need(room);
    memset(from[k], 0x55, reach);
    memset(to[k], 0xee, room);
    for (long at = 0; at < bytes; at++)
      from[k][at / s.block * s.stride + at % s.block] = value(case_rank, k, at);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < UNDER_WAY && !late; k++)
    MPI_Irecv(to[k], 1, flat ? target : column, partner(), k, MPI_COMM_WORLD, &receives[k]);
  if (!late) MPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < UNDER_WAY; k++) send(from[k], column, manner, k, &sends[k]);
  if (late) MPI_Barrier(MPI_COMM_WORLD);
  for (int k = UNDER_WAY - 1; k >= 0 && late; k--)
    MPI_Irecv(to[k], 1, flat ? target : column, partner(), k, MPI_COMM_WORLD, &receives[k]);
  MPI_Waitall(UNDER_WAY, receives, MPI_STATUSES_IGNORE);
  MPI_Waitall(UNDER_WAY, sends, MPI_STATUSES_IGNORE);
  for (int k = 0; k < UNDER_WAY; k++) {
    look(to[k], s, flat, k, how);
    if (manner >= 2) MPI_Request_free(&sends[k]);
    free(from[k]);
    free(to[k]);
  }
  MPI_Type_free(&column);
  MPI_Type_free(&target);
}

int main(int argc, char** argv) {
  static const struct shape shapes[] = {
      {1024, 8, 8192}, {513, 8, 8192},   {1023, 32, 1024}, {264, 31, 4096},  {512, 33, 4096},
      {2048, 1, 1024}, {2464, 32, 1024}, {2465, 32, 1024}, {2492, 32, 1024}, {2493, 32, 1024},
      {4097, 8, 4104}, {19712, 4, 12},   {3942, 20, 40},   {3943, 20, 40},   {1024, 1024, 2048},
  };
  case_begin(&argc, &argv);
  for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int manner = 0; manner < MANNERS; manner++) {
      exchange(shapes[i], 0, 0, manner);
      exchange(shapes[i], manner & 1, manner >> 1, 0);
    }
  return case_end();
}
