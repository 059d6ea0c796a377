/* What the examples have in common: two processes, an RC QP in each, and a socket between them over
 * which they tell each other numbers and keys. */
#ifndef TWO_ENDS_H
#define TWO_ENDS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <infiniband/weft_verbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the process with status 1 unless `fine`; the peer then sees the end of the socket. */
static inline void need(int fine, const char* what) {
  if (fine) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static inline void tell(int socket, const void* data, size_t size) {
  need(send(socket, data, size, MSG_NOSIGNAL) == (ssize_t)size, "telling the peer");
}

static inline void hear(int socket, void* data, size_t size) {
  errno = EPIPE;
  need(recv(socket, data, size, MSG_WAITALL) == (ssize_t)size, "hearing from the peer");
}

/* Both return when both have called it. */
static inline void meet(int socket) {
  char token = 0;
  tell(socket, &token, 1);
  hear(socket, &token, 1);
}

/* Starts a process that runs `peer` with one end of a socket; returns the other end. Contexts are
 * opened afterwards: an open device does not survive a fork. */
static inline int start_peer(int (*peer)(int socket)) {
  int ends[2];
  need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  fflush(NULL);
  pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    close(ends[0]);
    exit(peer(ends[1]));
  }
  close(ends[1]);
  return ends[0];
}

/* 1 when the next of the processes that end ended with status 0. */
static inline int peer_ended_well(void) {
  int status = 1;
  return wait(&status) > 0 && status == 0;
}

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  uint32_t max_sge; /* of a work request */
  int socket;       /* to the process at the other end of the QP, or -1 */
};

/* Opens the device named by WEFT_DEVICE, and without that or such a device the first one that has
 * layouts, or else the first one. */
static inline struct ibv_context* open_device(void) {
  const char* name = getenv("WEFT_DEVICE");
  struct ibv_context* chosen = NULL;
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  need(list != NULL, "ibv_get_device_list");
  for (int i = 0; i < count && name != NULL && chosen == NULL; i++) {
    if (strcmp(name, ibv_get_device_name(list[i])) == 0) chosen = ibv_open_device(list[i]);
  }
  for (int i = 0; i < count && chosen == NULL; i++) {
    struct ibv_mr_layout_caps caps;
    struct ibv_context* context = ibv_open_device(list[i]);
    if (context != NULL && ibv_query_mr_layout_caps(context, &caps) == 0) chosen = context;
    if (context != NULL && chosen == NULL) ibv_close_device(context);
  }
  if (chosen == NULL && count > 0) chosen = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (chosen == NULL) errno = ENODEV;
  need(chosen != NULL, "opening an RDMA device");
  return chosen;
}

static inline struct end open_end(void) {
  struct end end;
  struct ibv_device_attr attr;
  end.context = open_device();
  end.socket = -1;
  need((errno = ibv_query_device(end.context, &attr)) == 0, "ibv_query_device");
  end.max_sge = (uint32_t)attr.max_sge;
  end.pd = ibv_alloc_pd(end.context);
  need(end.pd != NULL, "ibv_alloc_pd");
  end.cq = ibv_create_cq(end.context, 64, NULL, NULL, 0);
  need(end.cq != NULL, "ibv_create_cq");
  return end;
}

static inline void close_end(struct end* end) {
  need((errno = ibv_destroy_cq(end->cq)) == 0, "ibv_destroy_cq");
  need((errno = ibv_dealloc_pd(end->pd)) == 0, "ibv_dealloc_pd");
  need(ibv_close_device(end->context) == 0, "ibv_close_device");
}

static inline struct ibv_mr* must_register(struct end* end, void* addr, size_t length, int access) {
  struct ibv_mr* mr = ibv_reg_mr(end->pd, addr, length, access);
  need(mr != NULL, "ibv_reg_mr");
  return mr;
}

static inline void must_deregister(struct ibv_mr* mr) {
  need((errno = ibv_dereg_mr(mr)) == 0, "ibv_dereg_mr");
}

/* An empty region to give a layout to; NULL when the device has no layouts of this kind. */
static inline struct ibv_mr* carrier_for(struct end* end, uint64_t cap_flag, int access) {
  struct ibv_mr_layout_caps caps;
  int code = ibv_query_mr_layout_caps(end->context, &caps);
  if (code == EOPNOTSUPP || (code == 0 && (caps.cap_flags & cap_flag) == 0)) return NULL;
  need((errno = code) == 0, "ibv_query_mr_layout_caps");
  return must_register(end, NULL, 0, IBV_ACCESS_ZERO_BASED | access);
}

/* What a call that sets a layout returned: the carrier, or NULL, and no carrier any more, when this
 * layout is beyond the device. */
static inline struct ibv_mr* carrier_or_null(struct ibv_mr* carrier, int code) {
  need(code == 0 || code == IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED, "setting a layout");
  if (code == 0) return carrier;
  must_deregister(carrier);
  return NULL;
}

/* An RC QP of 64 requests, connected to the one at the other end of the socket. */
static inline struct ibv_qp* connect_qp(struct end* end, int socket) {
  struct address {
    uint32_t qp_num;
    uint16_t lid;
    uint8_t is_global;
    union ibv_gid gid;
  } mine = {0}, peers;
  struct ibv_port_attr port;
  struct ibv_qp_init_attr init = {0};
  end->socket = socket;
  init.send_cq = end->cq;
  init.recv_cq = end->cq;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = 64;
  init.cap.max_recv_wr = 4;
  init.cap.max_send_sge = end->max_sge;
  init.cap.max_recv_sge = 1;
  struct ibv_qp* qp = ibv_create_qp(end->pd, &init);
  need(qp != NULL, "ibv_create_qp");

  need((errno = ibv_query_port(end->context, 1, &port)) == 0, "ibv_query_port");
  need(ibv_query_gid(end->context, 1, 0, &mine.gid) == 0, "ibv_query_gid");
  mine.qp_num = qp->qp_num;
  mine.lid = port.lid;
  mine.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  tell(socket, &mine, sizeof mine);
  hear(socket, &peers, sizeof peers);

  struct ibv_qp_attr attr = {0};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags =
      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  errno = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  need(errno == 0, "a QP to INIT");

  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peers.qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = peers.lid;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.is_global = peers.is_global;
  attr.ah_attr.grh.dgid = peers.gid;
  attr.ah_attr.grh.hop_limit = 1;
  errno = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  need(errno == 0, "a QP to RTR");

  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 18; /* a second: the peer may have to wait for a processor */
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  errno = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  need(errno == 0, "a QP to RTS");
  meet(socket);
  return qp;
}

static inline void destroy_qp(struct ibv_qp* qp) {
  need((errno = ibv_destroy_qp(qp)) == 0, "ibv_destroy_qp");
}

/* 1 when the process at the other end has ended: nothing tells a QP that waits for messages. */
static inline int peer_is_gone(const struct end* end) {
  char token;
  return recv(end->socket, &token, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The next completion; ends the process when it is not a success, or none can come any more. */
static inline struct ibv_wc completion(const struct end* end) {
  struct ibv_wc wc;
  int count, gone = 0;
  while ((count = ibv_poll_cq(end->cq, 1, &wc)) == 0) {
    errno = EPIPE;
    need(!gone, "waiting for a completion");
    gone = peer_is_gone(end);
    sched_yield();
  }
  need(count == 1, "ibv_poll_cq");
  if (wc.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "a completion with an error: %s\n", ibv_wc_status_str(wc.status));
    exit(1);
  }
  return wc;
}

/* Posts a request, with the list `sges`, and waits for its completion. */
static inline void run(const struct end* end, struct ibv_qp* qp, struct ibv_send_wr wr,
                       struct ibv_sge* sges, int count) {
  struct ibv_send_wr* bad;
  wr.sg_list = sges;
  wr.num_sge = count;
  wr.send_flags = IBV_SEND_SIGNALED;
  need((errno = ibv_post_send(qp, &wr, &bad)) == 0, "ibv_post_send");
  completion(end);
}

/* Memory of a peer's, as it tells it. */
struct remote {
  uint64_t addr;
  uint32_t rkey;
};

static inline struct ibv_send_wr rdma(enum ibv_wr_opcode opcode, struct remote remote) {
  struct ibv_send_wr wr = {0};
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = remote.addr;
  wr.wr.rdma.rkey = remote.rkey;
  return wr;
}

#endif
