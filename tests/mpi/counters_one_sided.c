/* One-sided counters: tickets drawn by MPI_Fetch_and_op, a lock by MPI_Compare_and_swap, sums by
 * MPI_Accumulate, puts and gets, while the target computes without a call of MPI, and while all
 * ranks wait for each other's counters. ranks: 2 to 4 */
#include "cases/case.h"

enum { ROUNDS = 50, TICKET, LOCK, GUARDED, SUM, DONE, FLAG, WORDS };

/* The target: looks at its own memory only, until all others are done. */
static void compute(volatile long* memory, int others) {
  while (__atomic_load_n(&memory[DONE], __ATOMIC_ACQUIRE) < others) {
  }
}

static long fetch_add(MPI_Win window, int target, int word, long value) {
  long before;
  MPI_Fetch_and_op(&value, &before, MPI_LONG, target, word, MPI_SUM, window);
  MPI_Win_flush(target, window);
  return before;
}

static void draw(MPI_Win window) {
  long last = -1, one = 1, zero = 0, got, mine = case_rank;
  for (int i = 0; i < ROUNDS; i++) {
    long ticket = fetch_add(window, 0, TICKET, 1);
    check(ticket > last, "ticket %ld after %ld", ticket, last);
    last = ticket;
    MPI_Accumulate(&mine, 1, MPI_LONG, 0, SUM, 1, MPI_LONG, MPI_SUM, window);
    if (i % 10) continue;
    do {
      MPI_Compare_and_swap(&one, &zero, &got, MPI_LONG, 0, LOCK, window);
      MPI_Win_flush(0, window);
    } while (got != 0);
    MPI_Get(&got, 1, MPI_LONG, 0, GUARDED, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    got++;
    MPI_Put(&got, 1, MPI_LONG, 0, GUARDED, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    check(fetch_add(window, 0, LOCK, -1) == 1, "the lock was taken away");
  }
  MPI_Win_flush(0, window);
  fetch_add(window, 0, DONE, 1);
}

int main(int argc, char** argv) {
  long* memory;
  MPI_Win window;
  case_begin(&argc, &argv);
  MPI_Win_allocate(WORDS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &window);
  memset(memory, 0, WORDS * sizeof(long));
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  int others = case_ranks - 1;
  if (case_rank == 0)
    compute(memory, others);
  else
    draw(window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (case_rank == 0) {
    long sum = 0;
    for (int r = 1; r < case_ranks; r++) sum += (long)r * ROUNDS;
    check(memory[TICKET] == (long)others * ROUNDS, "%ld tickets", memory[TICKET]);
    check(memory[GUARDED] == (long)others * (ROUNDS / 10), "guarded %ld", memory[GUARDED]);
    check(memory[SUM] == sum, "sum %ld", memory[SUM]);
    check(memory[LOCK] == 0, "lock %ld", memory[LOCK]);
  }
  /* Everybody adds to the next one's counter and waits for its own, calling nothing. */
  int next = (case_rank + 1) % case_ranks;
  for (long round = 1; round <= ROUNDS; round++) {
    long before = fetch_add(window, next, FLAG, 1);
    check(before == round - 1, "flag %ld in round %ld", before, round);
    while (__atomic_load_n(&((volatile long*)memory)[FLAG], __ATOMIC_ACQUIRE) < round) {
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  return case_end();
}
