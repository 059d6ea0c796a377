/* Records of 13 bytes of data: whatever pieces a message is cut into, borders fall inside a double.
 * Sender and receiver lay the record out differently. ranks: 2 */
#include "case.h"

struct layout {
  MPI_Aint flag, value, pair, pitch; /* char, double, two shorts */
};

static MPI_Datatype record(const struct layout* l) {
  int lengths[] = {1, 1, 2};
  MPI_Aint at[] = {l->flag, l->value, l->pair};
  MPI_Datatype kinds[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, plain, pitched;
  MPI_Type_create_struct(3, lengths, at, kinds, &plain);
  MPI_Type_create_resized(plain, 0, l->pitch, &pitched);
  MPI_Type_commit(&pitched);
  MPI_Type_free(&plain);
  return pitched;
}

static void put(char* at, const struct layout* l, int i) {
  char flag = (char)(i * 7);
  double value = i * 0.5 + 1;
  short pair[2] = {(short)i, (short)(i >> 3)};
  memcpy(at + l->flag, &flag, 1);
  memcpy(at + l->value, &value, 8);
  memcpy(at + l->pair, pair, 4);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const struct layout wide = {0, 8, 16, 24}, odd = {20, 3, 13, 29};
  MPI_Datatype out = record(&wide), in = record(&odd);
  const int counts[] = {1, 3, 79, 316, 630, 631, 1260, 5042, 20165, 80660, 200001};
  for (int k = 0; k < (int)(sizeof counts / sizeof *counts); k++) {
    int n = counts[k];
    size_t bytes = (size_t)n * odd.pitch;
    char *from = need((size_t)n * wide.pitch), *to = need(bytes), *want = need(bytes);
    memset(to, 0x6b, bytes);
    memset(want, 0x6b, bytes);
    for (int i = 0; i < n; i++) {
      put(from + (size_t)i * wide.pitch, &wide, i + case_rank);
      put(want + (size_t)i * odd.pitch, &odd, i + partner());
    }
    MPI_Sendrecv(from, n, out, partner(), k, to, n, in, partner(), k, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (size_t i = 0; i < bytes && memcmp(to, want, bytes) != 0; i++) {
      if (!check(to[i] == want[i], "%d records: byte %zu of record %zu", n, i % odd.pitch,
                 i / odd.pitch)) {
        break;
      }
    }
    free(from);
    free(to);
    free(want);
  }
  MPI_Type_free(&out);
  MPI_Type_free(&in);
  return case_end();
}
