/* Counts the bytes an application sends and receives point to point with non-contiguous datatypes:
 * the denominator of "how much was offloaded", from nobody's bookkeeping but its own.
 *
 * Preload it (mpirun -x LD_PRELOAD=.../libpmpi_count.so PROGRAM). In MPI_Finalize rank 0 prints the
 * sums over MPI_COMM_WORLD in one line of words NAME=BYTES,
 *   pmpi_count: send=.. receive=.. bsend=.. messages=..
 * and, where the MPI has performance variables named after weft, what those say:
 *   pmpi_count: weft_send=.. weft_send_fallback=.. weft_receive=.. weft_receive_fallback=..
 * Buffered sends are in `bsend` only. A receive counts with what arrived, when it completes. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SEND,
  RECEIVE,
  BSEND,
  MESSAGES,
  WEFT_SEND,
  WEFT_SEND_FALLBACK,
  WEFT_RECEIVE,
  WEFT_RECEIVE_FALLBACK,
  SUMS
};

static unsigned long long sums[SUMS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(int what, unsigned long long bytes) {
  pthread_mutex_lock(&lock);
  sums[what] += bytes;
  if (what != MESSAGES) sums[MESSAGES]++;
  pthread_mutex_unlock(&lock);
}

static void open_variables(void);
static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* Packed bytes of (count, type) if that is not one contiguous block, and otherwise 0. */
static unsigned long long scattered(int count, MPI_Datatype type) {
  MPI_Count size, lb, extent, true_lb, true_extent;
  int integers, addresses, types, combiner;
  pthread_once(&opened, open_variables);
  if (count == 0 || type == MPI_DATATYPE_NULL) return 0;
  PMPI_Type_size_x(type, &size);
  PMPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
  PMPI_Type_get_extent_x(type, &lb, &extent);
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (size == 0) return 0;
  if (combiner == MPI_COMBINER_NAMED && size == extent) return 0;
  if (size == true_extent && (count == 1 || extent == size)) return 0;
  return (unsigned long long)size * (unsigned long long)count;
}

static void sent(int what, int count, MPI_Datatype type, int to) {
  unsigned long long bytes = to == MPI_PROC_NULL ? 0 : scattered(count, type);
  if (bytes) add(what, bytes);
}

/* --- requests whose bytes are known only later ---------------------------------------------- */

struct pending {
  MPI_Request request;
  int persistent;
  int sends;                /* SEND or BSEND: counted when started; RECEIVE: when completed */
  unsigned long long bytes; /* of one send */
  struct pending* next;
};
enum { BUCKETS = 1024 };
static struct pending* table[BUCKETS];

static struct pending** slot(MPI_Request request) {
  size_t key = (size_t)request;
  struct pending** at = &table[(key >> 6) % BUCKETS];
  while (*at && (*at)->request != request) at = &(*at)->next;
  return at;
}

static void forget(MPI_Request request) {
  pthread_mutex_lock(&lock);
  struct pending **at = slot(request), *old = *at;
  if (old) *at = old->next;
  pthread_mutex_unlock(&lock);
  free(old);
}

static void watch(MPI_Request request, int what, int persistent, unsigned long long bytes) {
  if (bytes == 0) return;
  forget(request); /* a handle that MPI uses again */
  struct pending* one = malloc(sizeof *one);
  if (!one) abort();
  pthread_mutex_lock(&lock);
  struct pending** at = slot(request);
  *one = (struct pending){request, persistent, what, bytes, NULL};
  *at = one;
  pthread_mutex_unlock(&lock);
}

static void started(MPI_Request request) {
  pthread_mutex_lock(&lock);
  struct pending* one = *slot(request);
  int what = one ? one->sends : RECEIVE;
  unsigned long long bytes = one ? one->bytes : 0;
  pthread_mutex_unlock(&lock);
  if (what != RECEIVE) add(what, bytes);
}

static void received(const MPI_Status* status) {
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
  if (bytes > 0 && status->MPI_SOURCE != MPI_PROC_NULL) add(RECEIVE, (unsigned long long)bytes);
}

static void completed(MPI_Request request, const MPI_Status* status) {
  if (request == MPI_REQUEST_NULL) return;
  pthread_mutex_lock(&lock);
  struct pending* one = *slot(request);
  int receives = one && one->sends == RECEIVE, keep = one && one->persistent;
  pthread_mutex_unlock(&lock);
  if (!one) return;
  if (receives) received(status);
  if (!keep) forget(request);
}

/* --- sends ---------------------------------------------------------------------------------- */

#define BLOCKING_SEND(NAME, WHAT)                                                   \
  int MPI_##NAME(const void* buffer, int count, MPI_Datatype type, int to, int tag, \
                 MPI_Comm comm) {                                                   \
    sent(WHAT, count, type, to);                                                    \
    return PMPI_##NAME(buffer, count, type, to, tag, comm);                         \
  }
BLOCKING_SEND(Send, SEND)
BLOCKING_SEND(Ssend, SEND)
BLOCKING_SEND(Rsend, SEND)
BLOCKING_SEND(Bsend, BSEND)

#define STARTING_SEND(NAME, WHAT)                                                                  \
  int MPI_##NAME(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                           \
    sent(WHAT, count, type, to);                                                                   \
    return PMPI_##NAME(buffer, count, type, to, tag, comm, request);                               \
  }
STARTING_SEND(Isend, SEND)
STARTING_SEND(Issend, SEND)
STARTING_SEND(Irsend, SEND)
STARTING_SEND(Ibsend, BSEND)

#define PERSISTENT_SEND(NAME, WHAT)                                                                \
  int MPI_##NAME(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                           \
    unsigned long long bytes = to == MPI_PROC_NULL ? 0 : scattered(count, type);                   \
    int code = PMPI_##NAME(buffer, count, type, to, tag, comm, request);                           \
    if (code == MPI_SUCCESS) watch(*request, WHAT, 1, bytes);                                      \
    return code;                                                                                   \
  }
PERSISTENT_SEND(Send_init, SEND)
PERSISTENT_SEND(Ssend_init, SEND)
PERSISTENT_SEND(Rsend_init, SEND)
PERSISTENT_SEND(Bsend_init, BSEND)

int MPI_Start(MPI_Request* request) {
  started(*request);
  return PMPI_Start(request);
}
int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; i++) started(requests[i]);
  return PMPI_Startall(count, requests);
}

/* --- receives ------------------------------------------------------------------------------- */

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  unsigned long long room = scattered(count, type);
  int code = PMPI_Recv(buffer, count, type, from, tag, comm, real);
  if (room && code == MPI_SUCCESS) received(real);
  return code;
}
int MPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
              MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  unsigned long long room = scattered(count, type);
  int code = PMPI_Mrecv(buffer, count, type, message, real);
  if (room && code == MPI_SUCCESS) received(real);
  return code;
}
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  unsigned long long room = scattered(count, type);
  int code = PMPI_Irecv(buffer, count, type, from, tag, comm, request);
  if (code == MPI_SUCCESS) watch(*request, RECEIVE, 0, room);
  return code;
}
int MPI_Imrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
               MPI_Request* request) {
  unsigned long long room = scattered(count, type);
  int code = PMPI_Imrecv(buffer, count, type, message, request);
  if (code == MPI_SUCCESS) watch(*request, RECEIVE, 0, room);
  return code;
}
int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  unsigned long long room = scattered(count, type);
  int code = PMPI_Recv_init(buffer, count, type, from, tag, comm, request);
  if (code == MPI_SUCCESS) watch(*request, RECEIVE, 1, room);
  return code;
}
int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                 void* in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  unsigned long long room = scattered(in_count, in_type);
  sent(SEND, out_count, out_type, to);
  int code = PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from,
                           in_tag, comm, real);
  if (room && code == MPI_SUCCESS) received(real);
  return code;
}

/* --- completion ------------------------------------------------------------------------------ */

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  MPI_Request before = *request;
  int code = PMPI_Wait(request, real);
  if (code == MPI_SUCCESS) completed(before, real);
  return code;
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  MPI_Request before = *request;
  int code = PMPI_Test(request, flag, real);
  if (code == MPI_SUCCESS && *flag) completed(before, real);
  return code;
}

/* Copies of the handles (they are reset on completion) and statuses of our own where needed. */
struct group {
  MPI_Request* before;
  MPI_Status *own, *statuses;
};
static struct group group_of(int count, const MPI_Request requests[], MPI_Status statuses[]) {
  struct group g;
  size_t n = count > 0 ? (size_t)count : 1;
  g.before = malloc(n * sizeof *g.before);
  g.own = statuses == MPI_STATUSES_IGNORE ? malloc(n * sizeof *g.own) : NULL;
  if (!g.before || (statuses == MPI_STATUSES_IGNORE && !g.own)) abort();
  for (int i = 0; i < count; i++) g.before[i] = requests[i];
  g.statuses = g.own ? g.own : statuses;
  return g;
}
static void group_done(struct group* g) {
  free(g->before);
  free(g->own);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  struct group g = group_of(count, requests, statuses);
  int code = PMPI_Waitall(count, requests, g.statuses);
  for (int i = 0; i < count && code == MPI_SUCCESS; i++) completed(g.before[i], &g.statuses[i]);
  group_done(&g);
  return code;
}
int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  struct group g = group_of(count, requests, statuses);
  int code = PMPI_Testall(count, requests, flag, g.statuses);
  for (int i = 0; i < count && code == MPI_SUCCESS && *flag; i++) {
    completed(g.before[i], &g.statuses[i]);
  }
  group_done(&g);
  return code;
}
int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  struct group g = group_of(count, requests, &own);
  int code = PMPI_Waitany(count, requests, index, real);
  if (code == MPI_SUCCESS && *index != MPI_UNDEFINED) completed(g.before[*index], real);
  group_done(&g);
  return code;
}
int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  MPI_Status own, *real = status == MPI_STATUS_IGNORE ? &own : status;
  struct group g = group_of(count, requests, &own);
  int code = PMPI_Testany(count, requests, index, flag, real);
  if (code == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED) completed(g.before[*index], real);
  group_done(&g);
  return code;
}
int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                 MPI_Status statuses[]) {
  struct group g = group_of(count, requests, statuses);
  int code = PMPI_Waitsome(count, requests, done, indices, g.statuses);
  for (int i = 0; code == MPI_SUCCESS && *done != MPI_UNDEFINED && i < *done; i++) {
    completed(g.before[indices[i]], &g.statuses[i]);
  }
  group_done(&g);
  return code;
}
int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                 MPI_Status statuses[]) {
  struct group g = group_of(count, requests, statuses);
  int code = PMPI_Testsome(count, requests, done, indices, g.statuses);
  for (int i = 0; code == MPI_SUCCESS && *done != MPI_UNDEFINED && i < *done; i++) {
    completed(g.before[indices[i]], &g.statuses[i]);
  }
  group_done(&g);
  return code;
}
int MPI_Request_free(MPI_Request* request) {
  forget(*request);
  return PMPI_Request_free(request);
}

/* --- weft's own counters --------------------------------------------------------------------- */

/* A handle of a counter counts from when it was made: before the first message. (Not in MPI_Init:
 * Fortran's does not come by here.) */
struct variable {
  MPI_T_pvar_handle handle;
  int what;
  struct variable* next;
};
static struct variable* variables;
static MPI_T_pvar_session session;

/* Which of the sums a performance variable belongs to, or SUMS. */
static int sum_of(const char* name) {
  size_t length = strlen(name);
  const char* end = "_bytes";
  if (!strstr(name, "weft") || length < strlen(end) || strcmp(name + length - strlen(end), end)) {
    return SUMS;
  }
  int fallback = strstr(name, "fallback") != NULL;
  if (strstr(name, "_send_")) return fallback ? WEFT_SEND_FALLBACK : WEFT_SEND;
  if (strstr(name, "_receive_")) return fallback ? WEFT_RECEIVE_FALLBACK : WEFT_RECEIVE;
  return SUMS;
}

static void open_variables(void) {
  int provided, number = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
  MPI_T_pvar_session_create(&session);
  MPI_T_pvar_get_num(&number);
  for (int i = 0; i < number; i++) {
    char name[256], text[1024];
    int name_length = sizeof name, text_length = sizeof text, verbosity, class, bind, readonly,
        continuous, atomic, count = 1;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &class, &type, &values, text,
                            &text_length, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS ||
        sum_of(name) == SUMS || type != MPI_UNSIGNED_LONG_LONG) {
      continue;
    }
    struct variable* one = malloc(sizeof *one);
    if (!one) abort();
    *one = (struct variable){.what = sum_of(name), .next = variables};
    if (MPI_T_pvar_handle_alloc(session, i, NULL, &one->handle, &count) == MPI_SUCCESS) {
      variables = one;
    } else {
      free(one);
    }
  }
}

static void read_variables(void) {
  for (struct variable* one = variables; one; one = one->next) {
    unsigned long long value = 0;
    if (MPI_T_pvar_read(session, one->handle, &value) == MPI_SUCCESS) sums[one->what] += value;
  }
}

int MPI_Finalize(void) {
  unsigned long long all[SUMS];
  int rank;
  read_variables();
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(sums, all, SUMS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("pmpi_count: send=%llu receive=%llu bsend=%llu messages=%llu\n", all[SEND], all[RECEIVE],
           all[BSEND], all[MESSAGES]);
    printf(
        "pmpi_count: weft_send=%llu weft_send_fallback=%llu weft_receive=%llu "
        "weft_receive_fallback=%llu\n",
        all[WEFT_SEND], all[WEFT_SEND_FALLBACK], all[WEFT_RECEIVE], all[WEFT_RECEIVE_FALLBACK]);
    fflush(stdout);
  }
  return PMPI_Finalize();
}
