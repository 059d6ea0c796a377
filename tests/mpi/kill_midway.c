/* A job of which one process is killed (SIGKILL) in the middle of what two ranks do for ever.
 *
 *   mpirun -np 2 kill_midway VICTIM MICROSECONDS FILE [messages|collectives|windows]
 *
 * They send large strided messages back and forth (a rendezvous each), or go through small
 * collectives, or through atomic operations on each other's windows. So long after the first ones
 * rank VICTIM writes the time (seconds since the epoch) to FILE and kills itself. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 1 << 19, PITCH = 3 };

static int file = -1;

/* Only async-signal-safe calls: the process is anywhere in MPI when this interrupts it. */
static void die(int signal) {
  struct timespec now;
  char digits[32], *at = digits + sizeof digits;
  (void)signal;
  clock_gettime(CLOCK_REALTIME, &now);
  *--at = '\n';
  for (int i = 0; i < 9; i++, now.tv_nsec /= 10) *--at = (char)('0' + now.tv_nsec % 10);
  *--at = '.';
  for (; now.tv_sec; now.tv_sec /= 10) *--at = (char)('0' + now.tv_sec % 10);
  if (write(file, at, (size_t)(digits + sizeof digits - at)) < 0) _exit(3);
  kill(getpid(), SIGKILL);
}

static double* array;
static MPI_Datatype type;
static MPI_Win window;
static int rank;

static void messages_begin(void) {
  array = calloc((size_t)ROWS * PITCH, sizeof *array);
  if (array == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Type_vector(ROWS, 1, PITCH, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
}

static void messages(long round) {
  if (rank == round % 2) {
    MPI_Send(array, 1, type, 1 - rank, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(array, 1, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void collectives_begin(void) {}

static void collectives(long round) {
  double in = rank, out;
  MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Bcast(&out, 1, MPI_DOUBLE, (int)(round % 2), MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void windows_begin(void) {
  long* base;
  MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  *base = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
}

static void windows(long round) {
  long one = 1, before;
  int target = (int)(round % 2);
  MPI_Accumulate(&one, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, window);
  MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 0, MPI_SUM, window);
  MPI_Win_flush(target, window);
  /* Whoever survives learns of the other's death no later than here. */
  if (round % 1000 == 0) MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*begin)(void);
  void (*go_on)(long round);
} works[] = {{"messages", messages_begin, messages},
             {"collectives", collectives_begin, collectives},
             {"windows", windows_begin, windows}};

int main(int argc, char** argv) {
  size_t work = 0, number = sizeof works / sizeof *works;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  while (argc == 5 && work < number && strcmp(works[work].name, argv[4]) != 0) work++;
  if (argc < 4 || argc > 5 || work == number) {
    if (rank == 0)
      fprintf(stderr,
              "usage: kill_midway VICTIM MICROSECONDS FILE [messages|collectives|windows]\n");
    MPI_Finalize();
    return 2;
  }
  works[work].begin();
  for (long round = 0;; round++) {
    works[work].go_on(round);
    if (round == 3 && rank == atoi(argv[1])) {
      file = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
      struct sigaction action = {.sa_handler = die};
      struct itimerval timer = {{0, 0}, {atoi(argv[2]) / 1000000, atoi(argv[2]) % 1000000}};
      sigaction(SIGALRM, &action, NULL);
      setitimer(ITIMER_REAL, &timer, NULL);
    }
  }
}
