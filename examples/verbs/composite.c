/* A composite region: a header and a body, which lie in two buffers, become one region. A peer
 * reads and writes across both with one key, and one request each. Without layouts it is told two
 * keys and needs two.
 * Build: cc composite.c -lweft-verbs -libverbs */
#include "two_ends.h"

enum { HEADER = 40, BODY = 5000, ALL = HEADER + BODY };
enum {
  PARTS = 2,
  REMOTE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
};

/* What the owner tells: one region with all of it, or its parts. */
struct offer {
  uint32_t count;
  struct {
    struct remote remote;
    uint32_t length;
  } part[PARTS];
};

static uint8_t before(int i) {
  return (uint8_t)(i * 7 + 1);
}
static uint8_t after(int i) {
  return (uint8_t)(i * 5 + 3);
}

/* Reads or writes all that is on offer, in one request for each part. */
static void transfer(struct end* end, struct ibv_qp* qp, enum ibv_wr_opcode opcode,
                     const struct offer* offer, struct ibv_mr* mr) {
  uint64_t at = (uintptr_t)mr->addr;
  for (uint32_t i = 0; i < offer->count; i++) {
    struct ibv_sge sge = {at, offer->part[i].length, mr->lkey};
    run(end, qp, rdma(opcode, offer->part[i].remote), &sge, 1);
    at += offer->part[i].length;
  }
}

static int peer(int socket) {
  static uint8_t packed[ALL];
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  struct ibv_mr* mr = must_register(&end, packed, sizeof packed, IBV_ACCESS_LOCAL_WRITE);
  struct offer offer;
  int wrong = 0;
  hear(socket, &offer, sizeof offer);
  transfer(&end, qp, IBV_WR_RDMA_READ, &offer, mr);
  for (int i = 0; i < ALL; i++) wrong += packed[i] != before(i);
  for (int i = 0; i < ALL; i++) packed[i] = after(i);
  transfer(&end, qp, IBV_WR_RDMA_WRITE, &offer, mr);
  if (wrong != 0) fprintf(stderr, "composite: %d bytes of %d were read wrong\n", wrong, ALL);
  meet(socket);
  must_deregister(mr);
  destroy_qp(qp);
  close_end(&end);
  return wrong != 0;
}

/* The two parts as one region; NULL when the device cannot. */
static struct ibv_mr* describe(struct end* end, struct ibv_mr* const part[PARTS]) {
  struct ibv_mr* carrier = carrier_for(end, IBV_MR_SET_LAYOUT_SG, REMOTE);
  struct ibv_sge list[PARTS];
  if (carrier == NULL) return NULL;
  for (int i = 0; i < PARTS; i++) {
    list[i].addr = (uintptr_t)part[i]->addr;
    list[i].length = (uint32_t)part[i]->length;
    list[i].lkey = part[i]->lkey;
  }
  return carrier_or_null(carrier, ibv_mr_set_layout_sg(carrier, 0, PARTS, list));
}

int main(void) {
  static uint8_t header[HEADER], body[BODY];
  int socket = start_peer(peer);
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  for (int i = 0; i < HEADER; i++) header[i] = before(i);
  for (int i = 0; i < BODY; i++) body[i] = before(HEADER + i);
  struct ibv_mr* part[PARTS] = {must_register(&end, header, HEADER, REMOTE),
                                must_register(&end, body, BODY, REMOTE)};
  struct ibv_mr* both = describe(&end, part);
  struct offer offer = {0};
  if (both != NULL) {
    offer.count = 1;
    offer.part[0].remote.rkey = both->rkey; /* from address 0 on: the carrier is zero-based */
    offer.part[0].length = ALL;
    printf("composite: buffers of %d and %d bytes as one region, read and written with one key\n",
           HEADER, BODY);
  } else {
    for (offer.count = 0; offer.count < PARTS; offer.count++) {
      struct ibv_mr* mr = part[offer.count];
      offer.part[offer.count].remote.addr = (uintptr_t)mr->addr;
      offer.part[offer.count].remote.rkey = mr->rkey;
      offer.part[offer.count].length = (uint32_t)mr->length;
    }
    printf("composite: no SG layouts here: buffers of %d and %d bytes, each with its own key\n",
           HEADER, BODY);
  }
  tell(socket, &offer, sizeof offer);
  meet(socket); /* the peer has written */

  int wrong = 0;
  for (int i = 0; i < HEADER; i++) wrong += header[i] != after(i);
  for (int i = 0; i < BODY; i++) wrong += body[i] != after(HEADER + i);
  if (wrong != 0) fprintf(stderr, "composite: %d bytes of %d were written wrong\n", wrong, ALL);
  if (both != NULL) must_deregister(both);
  must_deregister(part[1]);
  must_deregister(part[0]);
  destroy_qp(qp);
  close_end(&end);
  int fine = peer_ended_well() && wrong == 0;
  printf("composite: %s\n", fine ? "OK" : "WRONG");
  return !fine;
}
