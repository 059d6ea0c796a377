/* The example of the RFC "IB device memory support": a counting semaphore in device memory. Its
 * owner hands the key to peers, who all increment it by atomic operations of their adapters; the
 * owner's memory bus sees nothing of that. Each peer reads it back by RDMA READ until all have
 * arrived. Without device memory it lies in host memory, which a program has to be ready for:
 * adapters have little, and it may be taken.
 * Build: cc semaphore.c -lweft-verbs -libverbs */
#include <poll.h>

#include "two_ends.h"

enum { PEERS = 3, INCREMENTS = 1000, BYTES = 64 };
enum { REMOTE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static uint64_t read_back(struct end* end, struct ibv_qp* qp, struct remote semaphore,
                          struct ibv_mr* mr) {
  struct ibv_sge sge = {(uintptr_t)mr->addr, sizeof(uint64_t), mr->lkey};
  run(end, qp, rdma(IBV_WR_RDMA_READ, semaphore), &sge, 1);
  return *(volatile uint64_t*)mr->addr;
}

static int peer(int socket) {
  uint64_t value = 0, last = 0;
  struct remote semaphore;
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  struct ibv_mr* mr = must_register(&end, &value, sizeof value, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = {(uintptr_t)&value, sizeof value, mr->lkey};
  int wrong = 0;
  hear(socket, &semaphore, sizeof semaphore);
  for (int i = 0; i < INCREMENTS; i++) {
    struct ibv_send_wr wr = {0};
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = semaphore.addr;
    wr.wr.atomic.rkey = semaphore.rkey;
    wr.wr.atomic.compare_add = 1;
    run(&end, qp, wr, &sge, 1);
    /* The old value: nobody else got it, and it grows. */
    uint64_t old = *(volatile uint64_t*)&value;
    wrong += i > 0 && old <= last;
    last = old;
  }
  while ((last = read_back(&end, qp, semaphore, mr)) < PEERS * INCREMENTS) {
  }
  wrong += last != PEERS * INCREMENTS;
  if (wrong != 0) fprintf(stderr, "semaphore: a peer saw %d wrong values\n", wrong);
  meet(socket);
  must_deregister(mr);
  destroy_qp(qp);
  close_end(&end);
  return wrong != 0;
}

/* Returns when it has met all, in the order in which they come. */
static void meet_all(const int socket[PEERS]) {
  struct pollfd waiting[PEERS];
  for (int i = 0; i < PEERS; i++) waiting[i] = (struct pollfd){socket[i], POLLIN, 0};
  for (int met = 0; met < PEERS;) {
    need(poll(waiting, PEERS, -1) > 0, "poll");
    for (int i = 0; i < PEERS; i++) {
      if (waiting[i].fd < 0 || waiting[i].revents == 0) continue;
      meet(socket[i]);
      waiting[i].fd = -1;
      met++;
    }
  }
}

int main(void) {
  int socket[PEERS];
  struct ibv_qp* qp[PEERS];
  static _Alignas(BYTES) uint64_t in_host_memory[BYTES / sizeof(uint64_t)];
  uint64_t value = 0;
  for (int i = 0; i < PEERS; i++) socket[i] = start_peer(peer);
  struct end end = open_end();

  /* A semaphore of 0, and a region that holds nothing else. */
  struct ibv_alloc_dm_attr wanted = {BYTES, 0, 0};
  struct ibv_mr_attr region = {0};
  struct ibv_dm* dm = ibv_alloc_dm(end.context, &wanted);
  region.length = sizeof value;
  region.access = REMOTE;
  if (dm != NULL) {
    struct ibv_memcpy_dm_attr copy = {IBV_DM_CPY_HOST_TO_DEVICE, &value, 0, sizeof value, 0};
    need((errno = ibv_memcpy_dm(dm, &copy)) == 0, "ibv_memcpy_dm");
    region.type = IBV_DEV_MEM;
    region.mem_type.dev_mem.dm = dm;
  } else {
    printf("semaphore: no device memory here (%s): it is in host memory\n", strerror(errno));
    region.type = IBV_HOST_MEM;
    region.mem_type.host_mem.addr = in_host_memory;
  }
  struct ibv_mr* mr = ibv_reg_mr_ex(end.pd, &region);
  need(mr != NULL, "ibv_reg_mr_ex");

  /* A region of device memory is zero-based. */
  struct remote self = {dm != NULL ? 0 : (uintptr_t)in_host_memory, mr->rkey};
  for (int i = 0; i < PEERS; i++) {
    qp[i] = connect_qp(&end, socket[i]);
    tell(socket[i], &self, sizeof self);
  }
  meet_all(socket); /* each has seen the others' increments */

  if (dm != NULL) {
    struct ibv_memcpy_dm_attr copy = {IBV_DM_CPY_DEVICE_TO_HOST, &value, 0, sizeof value, 0};
    need((errno = ibv_memcpy_dm(dm, &copy)) == 0, "ibv_memcpy_dm");
  } else {
    value = in_host_memory[0];
  }
  printf("semaphore: %d peers incremented it %d times each, in %s memory: %llu\n", PEERS,
         INCREMENTS, dm != NULL ? "device" : "host", (unsigned long long)value);

  for (int i = 0; i < PEERS; i++) destroy_qp(qp[i]);
  must_deregister(mr);
  if (dm != NULL) need((errno = ibv_free_dm(dm)) == 0, "ibv_free_dm");
  close_end(&end);
  int fine = value == PEERS * INCREMENTS;
  for (int i = 0; i < PEERS; i++) fine = peer_ended_well() && fine;
  printf("semaphore: %s\n", fine ? "OK" : "WRONG");
  return !fine;
}
