/* MPI_THREAD_MULTIPLE: several threads exchange strided data at once, each over its own tag, making
 * and freeing types all the time. ranks: 2 */
#include <pthread.h>

#include "case.h"

enum { THREADS = 4, ROUNDS = 60 };
static int wrong_in[THREADS];

static void exchange(int thread, int round, double* a, double* b) {
  int rows = round % 5 == 4 ? 40000 : 10 + 97 * (round % 9), pitch = 2 + thread;
  MPI_Datatype type;
  MPI_Request requests[2];
  MPI_Type_vector(rows, 1, pitch, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < rows * pitch; i++) {
    a[i] = thread * 1e7 + round * 1e5 + i + 0.5 * case_rank;
    b[i] = -1;
  }
  MPI_Irecv(b, 1, type, partner(), thread, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(a, 1, type, partner(), thread, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < rows * pitch; i++) {
    double want = i % pitch ? -1 : thread * 1e7 + round * 1e5 + i + 0.5 * partner();
    wrong_in[thread] += b[i] != want;
  }
}

static void* work(void* argument) {
  int thread = (int)(long)argument;
  size_t bytes = (size_t)40000 * (2 + thread) * sizeof(double);
  double *a = need(bytes), *b = need(bytes);
  for (int round = 0; round < ROUNDS; round++) exchange(thread, round, a, b);
  free(a);
  free(b);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  case_start();
  if (provided < MPI_THREAD_MULTIPLE) {
    if (case_rank == 0) puts("SKIP: this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Finalize();
    return 0;
  }
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    check(wrong_in[i] == 0, "thread %d: %d wrong cells", i, wrong_in[i]);
  }
  return case_end();
}
