/* What the calls that make layouts cost, against the number of entries: one line of JSON each,
 * {"call": NAME, "entries": N, "seconds": S}, the least of several runs. Run under
 * `weftrun --verbs`; no peer is needed. */
#include <infiniband/verbs.h>
#include <infiniband/weft_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { RUNS = 7, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
static const size_t page = 4096;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void* need(void* pointer, const char* what) {
  if (pointer != NULL && pointer != MAP_FAILED) return pointer;
  perror(what);
  exit(1);
}

static void tell(const char* call, size_t entries, double seconds) {
  printf("{\"call\": \"%s\", \"entries\": %zu, \"seconds\": %.9f}\n", call, entries, seconds);
}

static struct ibv_mr* carrier(struct ibv_pd* pd) {
  return need(ibv_reg_mr(pd, NULL, 0, IBV_ACCESS_ZERO_BASED | ACCESS), "ibv_reg_mr");
}

/* `count` blocks of 64 bytes, one in 192, and each a little further than that. */
static void set_sg(struct ibv_pd* pd, struct ibv_mr* below, size_t count) {
  struct ibv_sge* list = need(malloc(count * sizeof *list), "malloc");
  double least = 1e9;
  for (size_t i = 0; i < count; i++) {
    uint64_t offset = i * 192 + i % 3 * 8;
    list[i] = (struct ibv_sge){(uint64_t)(uintptr_t)below->addr + offset, 64, below->lkey};
  }
  for (int run = 0; run < RUNS; run++) {
    struct ibv_mr* mr = carrier(pd);
    double began = now();
    if (ibv_mr_set_layout_sg(mr, 0, (int)count, list) != 0) need(NULL, "ibv_mr_set_layout_sg");
    double took = now() - began;
    if (took < least) least = took;
    ibv_dereg_mr(mr);
  }
  free(list);
  tell("ibv_mr_set_layout_sg", count, least);
}

/* `count` entries of 1,024 items each. */
static void set_interleaved(struct ibv_pd* pd, struct ibv_mr* below, size_t count) {
  struct ibv_mr_layout_interleaved* list = need(calloc(count, sizeof *list), "calloc");
  struct ibv_mr_layout_interleaved_dimensions dims = {count * 64, 1024};
  double least = 1e9;
  for (size_t i = 0; i < count; i++) {
    list[i].first_datum =
        (struct ibv_sge){(uint64_t)(uintptr_t)below->addr + i * 64, 32, below->lkey};
    list[i].num_repeated = 1;
    list[i].num_dimensions = 1;
    list[i].dims = &dims;
  }
  for (int run = 0; run < RUNS; run++) {
    struct ibv_mr* mr = carrier(pd);
    double began = now();
    if (ibv_mr_set_layout_interleaved(mr, 0, (int)count, list) != 0)
      need(NULL, "ibv_mr_set_layout_interleaved");
    double took = now() - began;
    if (took < least) least = took;
    ibv_dereg_mr(mr);
  }
  free(list);
  tell("ibv_mr_set_layout_interleaved", count, least);
}

/* Every other page of twice as many. */
static void register_pages(struct ibv_pd* pd, size_t count) {
  char* memory = need(mmap(NULL, 2 * count * page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                      "mmap");
  void** pages = need(malloc(count * sizeof *pages), "malloc");
  double least = 1e9;
  for (size_t i = 0; i < count; i++) {
    pages[i] = memory + 2 * i * page;
    *(volatile char*)pages[i] = 1; /* there before the clock runs */
  }
  for (int run = 0; run < 3; run++) {
    double began = now();
    struct ibv_mr* mr =
        need(ibv_reg_mr_sg(pd, pages, count, 0x10000, 0, count * page, ACCESS), "ibv_reg_mr_sg");
    double took = now() - began;
    if (took < least) least = took;
    ibv_dereg_mr(mr);
  }
  free(pages);
  munmap(memory, 2 * count * page);
  tell("ibv_reg_mr_sg", count, least);
}

int main(void) {
  int devices = 0;
  struct ibv_device** list = need(ibv_get_device_list(&devices), "ibv_get_device_list");
  if (devices == 0) {
    fputs("layout_cost: no verbs device; run it under weftrun --verbs\n", stderr);
    return 1;
  }
  struct ibv_context* context = need(ibv_open_device(list[0]), "ibv_open_device");
  struct ibv_mr_layout_caps caps;
  if (ibv_query_mr_layout_caps(context, &caps) != 0) {
    fputs("layout_cost: the device has no layouts\n", stderr);
    return 1;
  }
  struct ibv_pd* pd = need(ibv_alloc_pd(context), "ibv_alloc_pd");
  const size_t bytes = (size_t)64 << 20;
  void* memory = need(malloc(bytes), "malloc");
  struct ibv_mr* below = need(ibv_reg_mr(pd, memory, bytes, ACCESS), "ibv_reg_mr");
  for (size_t n = 1; n <= 262144 && n <= caps.max_num_sg; n *= 4) set_sg(pd, below, n);
  for (size_t n = 1; n <= 1024 && n <= caps.max_num_interleaved; n *= 4)
    set_interleaved(pd, below, n);
  for (size_t n = 16; n <= 262144; n *= 16) register_pages(pd, n);
  register_pages(pd, 262144);
  ibv_dereg_mr(below);
  free(memory);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(list);
  return 0;
}
