/* A column of a matrix goes to a peer: the sender's layout gathers it from the matrix, the receiver
 * gets it in one piece. Where the device cannot express the column (a ConnectX states strides of 16
 * bits), the work requests carry lists of its items instead.
 * Build: cc column.c -lweft-verbs -libverbs */
#include "two_ends.h"

enum { ROWS = 1000, COLUMNS = 10000, CHOSEN = 1234 };

static double item(int row, int column) {
  return row * 1e5 + column;
}

static int receiver(int socket) {
  static double column[ROWS];
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  struct ibv_mr* mr =
      must_register(&end, column, sizeof column, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  struct remote self = {(uintptr_t)column, mr->rkey};
  tell(socket, &self, sizeof self);
  meet(socket); /* the column has come */
  int wrong = 0;
  for (int row = 0; row < ROWS; row++) wrong += column[row] != item(row, CHOSEN);
  if (wrong != 0) fprintf(stderr, "column: %d items of %d are wrong\n", wrong, ROWS);
  must_deregister(mr);
  destroy_qp(qp);
  close_end(&end);
  return wrong != 0;
}

/* The column as a region; NULL when the device cannot. */
static struct ibv_mr* describe(struct end* end, struct ibv_mr* matrix, double* first) {
  struct ibv_mr* carrier = carrier_for(end, IBV_MR_SET_LAYOUT_INTERLEAVED, 0);
  struct ibv_mr_layout_interleaved_dimensions rows = {COLUMNS * sizeof(double), ROWS};
  struct ibv_mr_layout_interleaved column = {
      {(uintptr_t)first, sizeof(double), matrix->lkey}, 1, 1, &rows};
  if (carrier == NULL) return NULL;
  return carrier_or_null(carrier, ibv_mr_set_layout_interleaved(carrier, 0, 1, &column));
}

/* The same without a layout: as many items in a request as it can carry. Returns the requests. */
static int write_lists(struct end* end, struct ibv_qp* qp, struct remote to, double* first,
                       struct ibv_mr* matrix) {
  int requests = 0;
  struct ibv_sge* list = calloc(end->max_sge, sizeof *list);
  need(list != NULL, "calloc");
  for (int row = 0; row < ROWS; requests++) {
    int count = 0;
    struct ibv_send_wr wr = rdma(IBV_WR_RDMA_WRITE, to);
    for (; row < ROWS && count < (int)end->max_sge; row++, count++) {
      list[count].addr = (uintptr_t)(first + (size_t)row * COLUMNS);
      list[count].length = sizeof(double);
      list[count].lkey = matrix->lkey;
    }
    run(end, qp, wr, list, count);
    to.addr += count * sizeof(double);
  }
  free(list);
  return requests;
}

int main(void) {
  int socket = start_peer(receiver);
  struct end end = open_end();
  struct ibv_qp* qp = connect_qp(&end, socket);
  double* matrix = calloc((size_t)ROWS * COLUMNS, sizeof(double));
  need(matrix != NULL, "calloc");
  for (int row = 0; row < ROWS; row++) {
    for (int column = CHOSEN - 1; column <= CHOSEN + 1; column++) {
      matrix[(size_t)row * COLUMNS + column] = item(row, column);
    }
  }
  struct ibv_mr* whole = must_register(&end, matrix, sizeof(double) * ROWS * COLUMNS, 0);
  struct ibv_mr* column = describe(&end, whole, matrix + CHOSEN);
  struct remote to;
  hear(socket, &to, sizeof to);

  if (column != NULL) {
    struct ibv_sge all = {0, ROWS * sizeof(double), column->lkey};
    run(&end, qp, rdma(IBV_WR_RDMA_WRITE, to), &all, 1);
    printf("column: %d items, %zu bytes apart, by one RDMA WRITE of an interleaved layout\n", ROWS,
           COLUMNS * sizeof(double));
  } else {
    int requests = write_lists(&end, qp, to, matrix + CHOSEN, whole);
    printf(
        "column: no layout with items %zu bytes apart here: %d items by %d RDMA WRITEs of lists\n",
        COLUMNS * sizeof(double), ROWS, requests);
  }
  meet(socket);

  /* The layout goes before the region that it refers to. */
  if (column != NULL) must_deregister(column);
  must_deregister(whole);
  destroy_qp(qp);
  close_end(&end);
  free(matrix);
  int fine = peer_ended_well();
  printf("column: %s\n", fine ? "OK" : "WRONG");
  return !fine;
}
