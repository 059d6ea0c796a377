/* Runs the example code of the man pages: tests/verbs/examples compiles each page's and links it
 * with this. What an example's region holds is sent to a peer, who compares. With the argument
 * "limits" it prints those of the device that are in weft_verbs(7). */
#include "two_ends.h"

int column_can_be_a_layout(struct ibv_context* context, uint64_t item_bytes, uint64_t row_bytes);
struct ibv_mr* composite(struct ibv_pd* pd, struct ibv_mr* header, struct ibv_mr* body);
struct ibv_mr* swapped(struct ibv_pd* pd, struct ibv_mr* contig, uint32_t item_len, uint64_t pairs);
int send_column(struct ibv_qp* qp, struct ibv_mr* carrier,
                const struct ibv_mr_layout_interleaved* column);
struct ibv_mr* guest_buffer(struct ibv_pd* pd, void* const* host_pages, size_t num_pages,
                            uint64_t guest_addr, size_t length);
struct ibv_mr* changed_pages(struct ibv_pd* pd, void* range, size_t num_pages,
                             const uint64_t* changed);
int counter_value(struct ibv_dm* dm, uint64_t index, uint64_t* value);
struct ibv_mr* counter_region(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t index);
int move_on(struct ibv_mr** mr, char* ring, size_t size, size_t next);
struct ibv_mr* counter(struct ibv_pd* pd, struct ibv_dm** dm);

enum { PAGES = 8, MOST = 1 << 16 };

static struct end end;
static struct ibv_qp* qp;
static int to_peer;

static void check(int fine, const char* what) {
  errno = 0;
  need(fine, what);
}

/* Gets messages and compares them with what it was told to expect, until one of no bytes. */
static int peer(int socket) {
  static char expected[MOST], got[MOST];
  int wrong = 0;
  uint32_t length;
  end = open_end();
  qp = connect_qp(&end, socket);
  struct ibv_mr* mr = must_register(&end, got, sizeof got, IBV_ACCESS_LOCAL_WRITE);
  for (hear(socket, &length, sizeof length); length != 0; hear(socket, &length, sizeof length)) {
    struct ibv_sge sge = {(uintptr_t)got, sizeof got, mr->lkey};
    struct ibv_recv_wr wr = {0, NULL, &sge, 1}, *bad;
    hear(socket, expected, length);
    need((errno = ibv_post_recv(qp, &wr, &bad)) == 0, "ibv_post_recv");
    meet(socket);
    wrong += completion(&end).byte_len != length || memcmp(got, expected, length) != 0;
    tell(socket, &wrong, sizeof wrong);
  }
  must_deregister(mr);
  destroy_qp(qp);
  close_end(&end);
  return wrong != 0;
}

/* Tells the peer what comes next; it is ready then. */
static void expect(const void* bytes, uint32_t length) {
  tell(to_peer, &length, sizeof length);
  tell(to_peer, bytes, length);
  meet(to_peer);
}

static void arrived(const char* what) {
  int wrong;
  completion(&end);
  hear(to_peer, &wrong, sizeof wrong);
  check(wrong == 0, what);
}

static void sends(struct ibv_mr* mr, uint64_t addr, const void* bytes, uint32_t length,
                  const char* what) {
  struct ibv_send_wr wr = {0}, *bad;
  need(mr != NULL, what);
  struct ibv_sge sge = {addr, length, mr->lkey};
  expect(bytes, length);
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  need((errno = ibv_post_send(qp, &wr, &bad)) == 0, what);
  arrived(what);
}

static void layouts(void) {
  static char memory[] = "headerbody...ABCDEFGH";
  char* const items = memory + 13;
  check(
      column_can_be_a_layout(end.context, 8, 80) && !column_can_be_a_layout(end.context, 8, ~0ull),
      "column_can_be_a_layout");

  struct ibv_mr* header = must_register(&end, memory, 6, 0);
  struct ibv_mr* body = must_register(&end, memory + 6, 4, 0);
  struct ibv_mr* both = composite(end.pd, header, body);
  sends(both, 0, "headerbody", 10, "composite");
  must_deregister(both);
  must_deregister(body);
  must_deregister(header);

  struct ibv_mr* contig = must_register(&end, items, 8, IBV_ACCESS_ZERO_BASED);
  struct ibv_mr* pairs = swapped(end.pd, contig, 2, 2);
  sends(pairs, 0, "CDABGHEF", 8, "swapped");

  /* Columns of a matrix of 4 rows of two letters. */
  struct ibv_mr* carrier = must_register(&end, NULL, 0, IBV_ACCESS_ZERO_BASED);
  for (uint64_t i = 0; i < 2; i++) {
    struct ibv_mr_layout_interleaved_dimensions rows = {2, 4};
    struct ibv_mr_layout_interleaved column = {{i, 1, contig->lkey}, 1, 1, &rows};
    expect(i == 0 ? "ACEG" : "BDFH", 4);
    need((errno = send_column(qp, carrier, &column)) == 0, "send_column");
    arrived("send_column");
  }
  must_deregister(carrier);
  must_deregister(pairs);
  must_deregister(contig);
}

static void pages(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const uint64_t guest = 16 * page + 100;
  char* memory = aligned_alloc(page, PAGES * page);
  char* expected = malloc(PAGES * page);
  void* list[2];
  need(memory != NULL && expected != NULL, "malloc");
  for (size_t i = 0; i < PAGES * page; i++) memory[i] = (char)(i * 7 + i / page);
  list[0] = memory + 5 * page;
  list[1] = memory + 2 * page;
  memcpy(expected, memory + 5 * page + 100, page - 100);
  memcpy(expected + page - 100, memory + 2 * page, 300);
  struct ibv_mr* mr = guest_buffer(end.pd, list, 2, guest, page + 200);
  sends(mr, guest, expected, (uint32_t)page + 200, "guest_buffer");
  must_deregister(mr);

  const uint64_t changed = 1 << 1 | 1 << 4;
  memcpy(expected, memory + page, page);
  memcpy(expected + page, memory + 4 * page, page);
  mr = changed_pages(end.pd, memory, PAGES, &changed);
  sends(mr, 0, expected, 2 * (uint32_t)page, "changed_pages");
  must_deregister(mr);
  free(expected);
  free(memory);
}

static void device_memory(void) {
  struct ibv_alloc_dm_attr two_units = {128, 0, 0};
  struct ibv_dm* dm = ibv_alloc_dm(end.context, &two_units);
  uint64_t value = 0x1122334455667788;
  need(dm != NULL, "ibv_alloc_dm");
  struct ibv_memcpy_dm_attr copy = {IBV_DM_CPY_HOST_TO_DEVICE, &value, 64, sizeof value, 0};
  need((errno = ibv_memcpy_dm(dm, &copy)) == 0, "ibv_memcpy_dm");
  struct ibv_mr* mr = counter_region(end.pd, dm, 1);
  sends(mr, 0, &value, sizeof value, "counter_region");
  value = 0;
  check(counter_value(dm, 1, &value) == 0 && value == 0x1122334455667788, "counter_value");
  must_deregister(mr);
  need((errno = ibv_free_dm(dm)) == 0, "ibv_free_dm");

  mr = counter(end.pd, &dm);
  value = 0;
  sends(mr, 0, &value, sizeof value, "counter");
  must_deregister(mr);
  need((errno = ibv_free_dm(dm)) == 0, "ibv_free_dm");
}

static void reregistration(void) {
  static char ring[] = "onetwo";
  struct ibv_mr* mr = must_register(&end, ring, 3, 0);
  sends(mr, (uintptr_t)ring, "one", 3, "a region");
  need((errno = move_on(&mr, ring, 3, 1)) == 0, "move_on");
  sends(mr, (uintptr_t)ring + 3, "two", 3, "move_on");
  check(move_on(&mr, ring, 0, 1) == EINVAL && mr != NULL, "move_on by no bytes");
  sends(mr, (uintptr_t)ring + 3, "two", 3, "move_on by no bytes");
  must_deregister(mr);
}

static int print_limits(void) {
  struct ibv_device_attr attr;
  struct ibv_mr_layout_caps caps;
  end = open_end();
  need((errno = ibv_query_device(end.context, &attr)) == 0, "ibv_query_device");
  need((errno = ibv_query_mr_layout_caps(end.context, &caps)) == 0, "ibv_query_mr_layout_caps");
  printf("max_num_sg %u\n", caps.max_num_sg);
  printf("max_inline_num_sg %u\n", caps.max_inline_num_sg);
  printf("max_num_interleaved %u\n", caps.max_num_interleaved);
  printf("max_inline_num_interleaved %u\n", caps.max_inline_num_interleaved);
  printf("max_mr_stride_dimension %u\n", caps.max_mr_stride_dimension);
  printf("max_mr_nesting_level %u\n", caps.max_mr_nesting_level);
  printf("max_datum_length %llu\n", (unsigned long long)caps.max_datum_length);
  printf("max_offset_stride %llu\n", (unsigned long long)caps.max_offset_stride);
  printf("max_sge %d\n", attr.max_sge);
  printf("max_qp_rd_atom %d\n", attr.max_qp_rd_atom);
  close_end(&end);
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "limits") == 0) return print_limits();
  uint32_t no_more = 0;
  to_peer = start_peer(peer);
  end = open_end();
  qp = connect_qp(&end, to_peer);
  layouts();
  pages();
  device_memory();
  reregistration();
  tell(to_peer, &no_more, sizeof no_more);
  check(peer_ended_well(), "the peer");
  destroy_qp(qp);
  close_end(&end);
  puts("manual_program: OK");
  return 0;
}
