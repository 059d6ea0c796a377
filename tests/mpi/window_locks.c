/* Windows of every kind go through all ways of synchronisation in turn: locks exclusive and shared,
 * lock_all, fence, post-start-complete-wait, with accumulates in all of them. Whatever lies behind
 * the locks, sums are exact and an exclusive lock excludes. ranks: 2 to 4 */
#include "cases/case.h"

enum { ROUNDS = 40, SUM, GUARDED, PAIR, WORDS };

static long* memory;
static MPI_Win window;

static long at(int rank, int word) {
  long value;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  MPI_Get(&value, 1, MPI_LONG, rank, word, 1, MPI_LONG, window);
  MPI_Win_unlock(rank, window);
  return value;
}

/* Read, think, write: right only if nobody else is in between. */
static void exclusive_locks(void) {
  for (int i = 0; i < ROUNDS; i++) {
    long value;
    int target = i % case_ranks;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window);
    MPI_Get(&value, 1, MPI_LONG, target, GUARDED, 1, MPI_LONG, window);
    MPI_Win_flush(target, window);
    value++;
    MPI_Put(&value, 1, MPI_LONG, target, GUARDED, 1, MPI_LONG, window);
    MPI_Win_unlock(target, window);
  }
}

static void add_to_all(long value) {
  for (int r = 0; r < case_ranks; r++)
    MPI_Accumulate(&value, 1, MPI_LONG, r, SUM, 1, MPI_LONG, MPI_SUM, window);
}

static void lock_all(void) {
  MPI_Request request;
  long one = 1, before[1];
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < ROUNDS; i++) add_to_all(1);
  MPI_Win_flush_all(window);
  MPI_Rget_accumulate(&one, 1, MPI_LONG, before, 1, MPI_LONG, 0, SUM, 1, MPI_LONG, MPI_SUM, window,
                      &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(before[0] >= ROUNDS, "%ld before", before[0]);
  MPI_Win_unlock_all(window);
}

static void fences(void) {
  MPI_Win_fence(0, window);
  add_to_all(2);
  MPI_Win_fence(0, window);
  add_to_all(3);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

static void post_and_start(int use_test) {
  MPI_Group world, left, right;
  int to = (case_rank + 1) % case_ranks, from = (case_rank + case_ranks - 1) % case_ranks;
  long value = 1000 + case_rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &to, &right);
  MPI_Group_incl(world, 1, &from, &left);
  MPI_Win_post(left, 0, window);
  MPI_Win_start(right, 0, window);
  MPI_Put(&value, 1, MPI_LONG, to, PAIR, 1, MPI_LONG, window);
  MPI_Accumulate(&value, 1, MPI_LONG, to, SUM, 1, MPI_LONG, MPI_SUM, window);
  MPI_Win_complete(window);
  int done = 0;
  while (use_test && !done) MPI_Win_test(window, &done);
  if (!use_test) MPI_Win_wait(window);
  check(memory[PAIR] == 1000 + from, "from %d: %ld", from, memory[PAIR]);
  MPI_Group_free(&left);
  MPI_Group_free(&right);
  MPI_Group_free(&world);
}

static void all_ways(void) {
  memset(memory, 0, WORDS * sizeof *memory);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int turn = 0; turn < 3; turn++) {
    exclusive_locks();
    MPI_Barrier(MPI_COMM_WORLD);
    lock_all();
    MPI_Barrier(MPI_COMM_WORLD);
    fences();
    post_and_start(turn % 2);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int from = (case_rank + case_ranks - 1) % case_ranks;
  long sum = 3L * (case_ranks * (ROUNDS + 5) + (case_rank == 0 ? case_ranks : 0) + 1000 + from);
  check(at(case_rank, SUM) == sum, "sum %ld instead of %ld", at(case_rank, SUM), sum);
  long guarded = 0, expected = 3L * ROUNDS * case_ranks;
  for (int r = 0; r < case_ranks; r++) guarded += at(r, GUARDED);
  check(guarded == expected, "guarded %ld instead of %ld", guarded, expected);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  static long own[WORDS];
  case_begin(&argc, &argv);
  for (int i = 0; i < 3; i++) {
    MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    all_ways();
    MPI_Win_free(&window);
    memory = own;
    MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    all_ways();
    MPI_Win_free(&window);
  }
  /* Several at a time, one of them empty, freed in another order. */
  MPI_Win some[3];
  long* base;
  for (int i = 0; i < 3; i++)
    MPI_Win_allocate(i == 1 ? 0 : 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &some[i]);
  MPI_Win_free(&some[1]);
  MPI_Win_free(&some[2]);
  MPI_Win_free(&some[0]);
  return case_end();
}
