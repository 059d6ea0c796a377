/* Strides, displacements and buffers at odd addresses. ranks: 2 */
#include "case.h"

static void odd(int blocks, int length, int stride, int shift) {
  size_t bytes = (size_t)blocks * stride + 64;
  unsigned char *a = need(bytes), *b = need(bytes), *want = need(bytes);
  MPI_Datatype out, in;
  MPI_Type_create_hvector(blocks, length, stride, MPI_DOUBLE, &out);
  MPI_Type_commit(&out);
  /* The receiver goes through the same places from the last to the first. */
  MPI_Type_create_hvector(blocks, length, -stride, MPI_DOUBLE, &in);
  MPI_Type_commit(&in);
  for (size_t i = 0; i < bytes; i++) {
    a[i] = (unsigned char)(i * 31 + i / 256);
    b[i] = want[i] = 0xc3;
  }
  size_t block = length * sizeof(double), last = (size_t)(blocks - 1) * stride;
  for (int k = 0; k < blocks; k++) {
    memcpy(want + shift + last - (size_t)k * stride, a + shift + 1 + (size_t)k * stride, block);
  }
  MPI_Sendrecv(a + shift + 1, 1, out, partner(), 0, b + shift + last, 1, in, partner(), 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (size_t i = 0; i < bytes && memcmp(b, want, bytes) != 0; i++) {
    if (!check(b[i] == want[i], "stride %d, %d blocks: byte %zu", stride, blocks, i)) break;
  }
  MPI_Type_free(&out);
  MPI_Type_free(&in);
  free(a);
  free(b);
  free(want);
}

int main(int argc, char** argv) {
  case_begin(&argc, &argv);
  const int strides[] = {17, 19, 35, 57, 1001};
  for (int k = 0; k < 5; k++) {
    for (int shift = 0; shift < 4; shift++) {
      odd(4, 2, strides[k], shift);
      odd(1500, 2, strides[k], shift);
      odd(30011, 1, strides[k], shift);
    }
  }
  return case_end();
}
