/* A job of which one process is killed (SIGKILL) in the middle of a rendezvous.
 *
 *   mpirun -np 2 kill_midway VICTIM MICROSECONDS FILE
 *
 * Two ranks send large strided messages back and forth for ever. So long after the first one rank
 * VICTIM writes the time (seconds since the epoch) to FILE and kills itself. */
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

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4) {
    if (rank == 0) fprintf(stderr, "usage: kill_midway VICTIM MICROSECONDS FILE\n");
    MPI_Finalize();
    return 2;
  }
  double* array = calloc((size_t)ROWS * PITCH, sizeof *array);
  if (array == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Datatype type;
  MPI_Type_vector(ROWS, 1, PITCH, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (long message = 0;; message++) {
    if (rank == message % 2) {
      MPI_Send(array, 1, type, 1 - rank, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(array, 1, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (message == 3 && rank == atoi(argv[1])) {
      file = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (file < 0) MPI_Abort(MPI_COMM_WORLD, 1);
      struct sigaction action = {.sa_handler = die};
      struct itimerval timer = {{0, 0}, {atoi(argv[2]) / 1000000, atoi(argv[2]) % 1000000}};
      sigaction(SIGALRM, &action, NULL);
      setitimer(ITIMER_REAL, &timer, NULL);
    }
  }
}
