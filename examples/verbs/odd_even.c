/* The example of the RFC "Registering non-contiguous memory": items change places in pairs while
 * they are sent. An interleaved layout takes one item from the odd ones and one from the even ones
 * in turn; the memory itself stays as it is. Without such layouts, the work requests carry lists.
 * Build: cc odd_even.c -lweft-verbs -libverbs */
#include "two_ends.h"

enum { ITEMS = 100, LENGTH = 24 };

static void fill(char item[LENGTH], int index) {
  memset(item, 0, LENGTH);
  snprintf(item, LENGTH, "item %d", index);
}

static int receiver(int socket) {
  static char items[ITEMS][LENGTH];
  char expected[LENGTH];
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  struct ibv_mr* mr = must_register(&end, items, sizeof items, IBV_ACCESS_LOCAL_WRITE);
  int wrong = 0, got = 0;
  meet(socket); /* connected and registered; the sends that follow find a receive or are repeated */
  while (got < ITEMS) {
    struct ibv_sge rest = {(uintptr_t)items[got], (uint32_t)(ITEMS - got) * LENGTH, mr->lkey};
    struct ibv_recv_wr wr = {0, NULL, &rest, 1}, *bad;
    need((errno = ibv_post_recv(qp, &wr, &bad)) == 0, "ibv_post_recv");
    got += (int)completion(&end).byte_len / LENGTH;
  }
  for (int i = 0; i < ITEMS; i++) {
    fill(expected, i ^ 1);
    wrong += memcmp(items[i], expected, LENGTH) != 0;
  }
  if (wrong != 0) fprintf(stderr, "odd_even: %d items of %d are wrong\n", wrong, ITEMS);
  printf("odd_even: received \"%s\", \"%s\", \"%s\", \"%s\", ...\n", items[0], items[1], items[2],
         items[3]);
  must_deregister(mr);
  destroy_qp(qp);
  close_end(&end);
  return wrong != 0;
}

/* Items 1, 0, 3, 2, ... of `contig` as a region; NULL when the device cannot. `contig` is
 * zero-based: addresses are offsets. */
static struct ibv_mr* describe(struct end* end, struct ibv_mr* contig) {
  struct ibv_mr* carrier = carrier_for(end, IBV_MR_SET_LAYOUT_INTERLEAVED, 0);
  struct ibv_mr_layout_interleaved_dimensions every_other = {2 * LENGTH, ITEMS / 2};
  struct ibv_mr_layout_interleaved entries[2] = {
      {{1 * LENGTH, LENGTH, contig->lkey}, 1, 1, &every_other}, /* from item 1 on */
      {{0 * LENGTH, LENGTH, contig->lkey}, 1, 1, &every_other}, /* from item 0 on */
  };
  if (carrier == NULL) return NULL;
  return carrier_or_null(carrier, ibv_mr_set_layout_interleaved(carrier, 0, 2, entries));
}

/* The same without a layout; returns the requests. */
static int send_lists(struct end* end, struct ibv_qp* qp, struct ibv_mr* contig) {
  int requests = 0;
  struct ibv_sge* list = calloc(end->max_sge, sizeof *list);
  need(list != NULL, "calloc");
  for (int i = 0; i < ITEMS; requests++) {
    int count = 0;
    struct ibv_send_wr wr = {0};
    wr.opcode = IBV_WR_SEND;
    for (; i < ITEMS && count < (int)end->max_sge; i++, count++) {
      list[count].addr = (uint64_t)(i ^ 1) * LENGTH;
      list[count].length = LENGTH;
      list[count].lkey = contig->lkey;
    }
    run(end, qp, wr, list, count);
  }
  free(list);
  return requests;
}

int main(void) {
  static char items[ITEMS][LENGTH];
  int socket = start_peer(receiver);
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  for (int i = 0; i < ITEMS; i++) fill(items[i], i);
  struct ibv_mr* contig = must_register(&end, items, sizeof items, IBV_ACCESS_ZERO_BASED);
  struct ibv_mr* swapped = describe(&end, contig);
  meet(socket);

  if (swapped != NULL) {
    struct ibv_send_wr wr = {0};
    struct ibv_sge all = {0, ITEMS * LENGTH, swapped->lkey};
    wr.opcode = IBV_WR_SEND;
    run(&end, qp, wr, &all, 1);
    printf("odd_even: %d items by one SEND of an interleaved layout of two entries\n", ITEMS);
  } else {
    int requests = send_lists(&end, qp, contig);
    printf("odd_even: no interleaved layouts here: %d items by %d SENDs of lists\n", ITEMS,
           requests);
  }

  if (swapped != NULL) must_deregister(swapped);
  must_deregister(contig);
  int fine = peer_ended_well();
  destroy_qp(qp);
  close_end(&end);
  printf("odd_even: %s\n", fine ? "OK" : "WRONG");
  return !fine;
}
