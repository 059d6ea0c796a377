/* What every case has: a check that counts, and a verdict. A case is a plain MPI program about one
 * behaviour of derived datatypes; a right run prints a line OK (or SKIP and why) on rank 0. */
#ifndef WEFT_TESTS_MPI_CASE_H
#define WEFT_TESTS_MPI_CASE_H

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int case_rank, case_ranks, case_wrong;

/* Says what is wrong (the first few times) unless `right` holds. */
static inline int check(int right, const char* format, ...) {
  if (right) return 1;
  if (case_wrong++ < 6) {
    va_list rest;
    va_start(rest, format);
    fprintf(stderr, "rank %d: ", case_rank);
    vfprintf(stderr, format, rest);
    fputc('\n', stderr);
    va_end(rest);
  }
  return 0;
}

static inline void case_start(void) {
  MPI_Comm_rank(MPI_COMM_WORLD, &case_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &case_ranks);
}

static inline void case_begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  case_start();
}

/* The verdict of all ranks, and the end of MPI; the value for main to return. */
static inline int case_end(void) {
  int all = 0;
  MPI_Allreduce(&case_wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (case_rank == 0) puts(all ? "WRONG" : "OK");
  MPI_Finalize();
  return all != 0;
}

/* Memory or the end of the job. */
static inline void* need(size_t bytes) {
  void* memory = malloc(bytes ? bytes : 1);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  return memory;
}

/* The other one of two ranks. */
static inline int partner(void) {
  return 1 - case_rank;
}

#endif
