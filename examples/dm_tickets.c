/* Counters in device memory: processes draw tickets from one counter, and wait for each other on
 * another. No MPI needed; a handle is plain data, here passed by fork.
 * Build: cc dm_tickets.c -lweft-dm */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/dm.h>

enum { PROCESSES = 4, DRAWS = 10000, NEXT_TICKET = 0, ARRIVED = 1, COUNTERS = 2 };

static int work(const weft_dm_handle* handle) {
  weft_dm* dm;
  if (weft_dm_attach(handle, &dm) != 0) {
    fprintf(stderr, "dm_tickets: %s\n", weft_dm_error());
    return 1;
  }
  weft_dm_counter* next = weft_dm_counter_at(dm, NEXT_TICKET);
  weft_dm_counter* arrived = weft_dm_counter_at(dm, ARRIVED);
  weft_dm_add(arrived, 1);
  /* All start together; ten seconds, should one not come. */
  int late = weft_dm_wait(arrived, WEFT_DM_AT_LEAST, PROCESSES, 10000, NULL);
  for (int i = 0; i < DRAWS; i++) weft_dm_fetch_add(next, 1);
  weft_dm_free(dm);
  return late;
}

int main(void) {
  weft_dm* dm;
  weft_dm_handle handle;
  int failures = 0;
  if (weft_dm_alloc(COUNTERS * WEFT_DM_UNIT, WEFT_DM_DEVICE_OR_HOST, &dm) != 0) {
    fprintf(stderr, "dm_tickets: %s\n", weft_dm_error());
    return 1;
  }
  weft_dm_get_handle(dm, &handle);
  for (int i = 0; i < PROCESSES; i++)
    if (fork() == 0) _exit(work(&handle));
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    wait(&status);
    failures += status != 0;
  }
  unsigned long tickets = (unsigned long)weft_dm_load(weft_dm_counter_at(dm, NEXT_TICKET));
  int right = failures == 0 && tickets == PROCESSES * DRAWS;
  printf("dm_tickets: %s, %lu tickets, in %s memory\n", right ? "OK" : "WRONG", tickets,
         weft_dm_in_device(dm) ? "device" : "host");
  weft_dm_free(dm);
  return !right;
}
