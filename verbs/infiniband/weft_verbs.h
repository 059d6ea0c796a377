/*
 * The verbs of the RFCs "Registering non-contiguous memory" and "IB device memory support" that
 * upstream's <infiniband/verbs.h> does not have: layouts of memory regions, regions of scattered
 * pages, and two thin calls for device memory. C and C++; link with -lweft-verbs, or run the
 * program under `weftrun --verbs`.
 *
 * Lengths, offsets and strides are in bytes. Every call is thread safe. Whatever is passed in by
 * pointer is read before the call returns and remains the caller's. A call that fails changes
 * nothing, sets errno and, with WEFT_LOG=info, says on stderr which value was over which limit.
 * On a device that cannot do it, errno is EOPNOTSUPP.
 */
#ifndef INFINIBAND_WEFT_VERBS_H
#define INFINIBAND_WEFT_VERBS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

/* C names. NOLINTBEGIN(readability-identifier-naming) */
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Capabilities ------------------------------------------------------------------------- */

/* What the device can do with layouts: bits of ibv_mr_layout_caps.cap_flags. */
enum ibv_mr_layout_cap_flags {
  /* ibv_mr_set_layout_sg() */
  IBV_MR_SET_LAYOUT_SG = 1 << 0,
  /* ibv_mr_set_layout_interleaved() */
  IBV_MR_SET_LAYOUT_INTERLEAVED = 1 << 1,
  /* num_repeated may be more than 1, the same in all entries */
  IBV_MR_SET_LAYOUT_INTERLEAVED_REPEAT = 1 << 2,
  /* num_repeated may differ between the entries */
  IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_REPEAT = 1 << 3,
  /* the entries may run out in different rounds, or in the middle of their repeats */
  IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_DATUM_TOTAL = 1 << 4,
  /* IBV_MR_SET_LAYOUT_REGISTER_BUFFERS */
  IBV_MR_SET_LAYOUT_INTERNAL_REGISTRATION = 1 << 5
};

struct ibv_mr_layout_caps {
  uint64_t cap_flags;                  /* enum ibv_mr_layout_cap_flags */
  uint32_t max_num_sg;                 /* entries of an SG layout */
  uint32_t max_inline_num_sg;          /* of those, as many as an empty carrier has room for */
  uint32_t max_num_interleaved;        /* entries of an interleaved layout */
  uint32_t max_inline_num_interleaved; /* of those, as many as an empty carrier has room for */
  uint32_t max_mr_stride_dimension;    /* dimensions of an interleaved entry */
  uint32_t max_mr_nesting_level;       /* 1: layouts over plain MRs only; each level of layouts
                                          over layout MRs counts one more */
  uint64_t max_datum_length;           /* of an interleaved entry */
  uint64_t max_offset_stride;          /* of a dimension */
};

/*
 * States what the device of `context` can do. 0, or an errno value: EINVAL (caps is null),
 * EOPNOTSUPP (the device has no layouts).
 */
int ibv_query_mr_layout_caps(struct ibv_context* context, struct ibv_mr_layout_caps* caps);

/* ---- Layouts of memory regions ------------------------------------------------------------ */

/* Bits of the argument `flags` of the two calls below. */
enum ibv_mr_set_layout_flags {
  /*
   * The layout becomes valid by a work request: ibv_post_mr_layout(). Until that is executed the
   * old layout stays valid under the old keys. mr->lkey, mr->rkey, mr->addr and mr->length tell
   * those of the new layout as soon as the call returns.
   */
  IBV_MR_SET_LAYOUT_WITH_POST_WR = 1 << 0,
  /* Fail, rather than change mr->lkey and mr->rkey. */
  IBV_MR_SET_LAYOUT_AVOID_INVALIDATION = 1 << 1,
  /*
   * The entries name memory that no MR covers, by its virtual addresses; lkeys are ignored. The
   * memory is registered within `mr`, with the access that `mr` was registered with, until `mr`
   * gets another layout or is deregistered.
   */
  IBV_MR_SET_LAYOUT_REGISTER_BUFFERS = 1 << 2,
  IBV_MR_SET_LAYOUT_FLAGS_SUPPORTED = (IBV_MR_SET_LAYOUT_REGISTER_BUFFERS << 1) - 1
};

/* What the two calls below return when they fail. The old layout stays valid in all cases. */
enum ibv_mr_set_layout_err_code {
  /*
   * The input is wrong. errno: EINVAL (flags, counts, null pointers, lengths of 0, num_repeated
   * below 1, an `mr` that cannot carry a layout, an lkey that is not valid in the PD of `mr` or
   * names `mr` itself), EACCES (an MR grants less than the layout would), ERANGE (an entry is not
   * within its MR), EOVERFLOW (an entry or the whole is larger than 2^63 - 1 bytes), EFAULT
   * (REGISTER_BUFFERS: not all of it is mapped, or writable when that is needed), EBUSY (a posted
   * layout of `mr` was not executed yet, or a memory window is bound to `mr`), ENOMEM.
   */
  IBV_MR_SET_LAYOUT_ERR_INPUT = -1,
  /* The keys would change, and IBV_MR_SET_LAYOUT_AVOID_INVALIDATION was given. errno: ENOSPC. */
  IBV_MR_SET_LAYOUT_ERR_WOULD_INVALIDATE = -2,
  /* The device cannot do that (struct ibv_mr_layout_caps). errno: EOPNOTSUPP. */
  IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED = -3
};

/*
 * Makes `mr` a layout MR: its bytes are those of the `num_sge` entries of `sg_list`, one after
 * another. An entry is `length` bytes of the MR of `lkey`, from `addr` on: a virtual address, or
 * an offset if that MR is zero-based. That MR may be a layout MR (to max_mr_nesting_level) or one
 * of device memory.
 *
 * `mr` comes from ibv_reg_mr(); the usual carrier is empty and zero-based,
 * ibv_reg_mr(pd, NULL, 0, IBV_ACCESS_ZERO_BASED | access). It keeps its PD, its access and its
 * first address (0 if it is zero-based); what it covered before, it covers no more. Every MR of
 * the list belongs to its PD and grants at least its access, local and remote.
 *
 * The layout is valid on return, unless IBV_MR_SET_LAYOUT_WITH_POST_WR is given. mr->lkey and
 * mr->rkey stay as they are if `mr` had an SG layout of as many entries, or none yet and num_sge
 * is at most max_inline_num_sg. Otherwise they change and the old ones are invalid; a layout over
 * `mr` refers to the old key and gives a protection error until it is set again. Where keys stay,
 * layouts over `mr` follow its new layout, and give a protection error for as long as it is too
 * short for them.
 *
 * The MRs of the list cannot be deregistered, re-registered or freed while the layout refers to
 * them (EBUSY): deregister in the inverse order of registration. `mr` itself is deregistered as
 * any other, also after a failure.
 *
 * Entries may overlap; when they do, which of the bytes written to one place remains is undefined.
 * Atomic operations work where their 8 bytes are adjacent in memory and aligned.
 *
 * 0, or an ibv_mr_set_layout_err_code.
 */
int ibv_mr_set_layout_sg(struct ibv_mr* mr, int flags, int num_sge, const struct ibv_sge* sg_list);

/* A dimension of an interleaved entry. */
struct ibv_mr_layout_interleaved_dimensions {
  uint64_t offset_stride; /* from the start of an item to the start of the next; never backwards */
  uint64_t datum_count;   /* items, at least 1 */
};

/* An entry of an interleaved layout: equal items (datums) at regular distances. */
struct ibv_mr_layout_interleaved {
  struct ibv_sge first_datum; /* the first item: address or offset, length, lkey as in an SG list */
  int num_repeated;           /* items taken in each round, at least 1 */
  int num_dimensions;         /* length of dims; 0: the entry is its first item alone */
  /*
   * dims[0] is the innermost: dims[0].datum_count items, dims[0].offset_stride apart. dims[1] says
   * how often and how far apart all that occurs, and so on. The entry has as many items as the
   * product of the counts.
   */
  struct ibv_mr_layout_interleaved_dimensions* dims;
};

/*
 * Makes `mr` a layout MR of items that are taken from the `num_interleaved` entries in turn: in
 * each round the next num_repeated items of the first entry, then those of the second, and so on;
 * rounds follow until all items of all entries have been taken. An entry that has run out is
 * passed over.
 *
 *     repeat until all entries have run out:
 *         for each entry:
 *             for i from 1 to num_repeated, while the entry has items:
 *                 take its next item, first_datum.length bytes
 *
 * mr->lkey and mr->rkey stay as they are if `mr` had an interleaved layout of as many entries
 * with the same num_repeated each, or none yet and num_interleaved is at most
 * max_inline_num_interleaved. Everything else is as with ibv_mr_set_layout_sg().
 *
 * 0, or an ibv_mr_set_layout_err_code.
 */
int ibv_mr_set_layout_interleaved(struct ibv_mr* mr, int flags, int num_interleaved,
                                  const struct ibv_mr_layout_interleaved* interleaved_list);

/* The opcode of the completion of ibv_post_mr_layout(). */
#define IBV_WC_BIND_MR IBV_WC_DRIVER1

/*
 * Posts the work request that makes valid the layout which `mr` was given with
 * IBV_MR_SET_LAYOUT_WITH_POST_WR last (the RFC's IBV_WR_BIND_MR). It is executed in the order of
 * the send queue: work requests posted to `qp` after it may use the layout at once. `send_flags`:
 * IBV_SEND_SIGNALED, IBV_SEND_FENCE. A QP of type RC or UC; `qp` and `mr` are of one PD.
 *
 * A signalled request completes with IBV_WC_BIND_MR. When its status is not IBV_WC_SUCCESS
 * (IBV_WC_MW_BIND_ERR: an MR of the layout has changed since and no longer holds it;
 * IBV_WC_WR_FLUSH_ERR), the old layout is still valid under its old keys, and mr->lkey and
 * mr->rkey may name none: set the layout again.
 *
 * 0, or an errno value: EINVAL (nothing to post, unknown flags, another PD, the QP's type or
 * state), EBUSY (posted already and not executed yet), ENOMEM (the send queue is full).
 */
int ibv_post_mr_layout(struct ibv_qp* qp, struct ibv_mr* mr, uint64_t wr_id,
                       unsigned int send_flags);

/* ---- Regions of scattered pages ----------------------------------------------------------- */

/*
 * Registers pages of the operating system's size, anywhere in memory and in any order, as one MR.
 * Its first byte is byte `mr_offset` of the first page, it has `mr_length` bytes, and work
 * requests and peers name it by addresses from `mr_addr` on, whatever the pages' own are.
 *
 * pages: `num_pages` addresses, each aligned to a page; at least as many as
 * mr_offset + mr_length needs, which are the ones that are registered. A page may occur twice.
 * mr_offset: less than a page. access: ibv_access_flags; with IBV_ACCESS_ZERO_BASED mr_addr is 0.
 *
 * The MR's addr is mr_addr. It is deregistered by ibv_dereg_mr(), a layout may refer to it, and it
 * cannot be re-registered or carry a layout.
 *
 * The MR, or null with errno: EINVAL (a null pointer, an address that is not aligned, mr_offset,
 * a length of 0 or more than the pages hold, access, mr_addr + mr_length beyond the address
 * space), EFAULT (a page is not mapped, or not writable with IBV_ACCESS_LOCAL_WRITE), EOPNOTSUPP,
 * ENOMEM.
 */
struct ibv_mr* ibv_reg_mr_sg(struct ibv_pd* pd, void* const* pages, size_t num_pages,
                             uint64_t mr_addr, size_t mr_offset, size_t mr_length, int access);

/*
 * The same for pages that a bitmap picks, in ascending order, from the `num_pages` pages that
 * begin at `range`. bitmap: (num_pages + 63) / 64 words; page i is picked when bit i % 64 (counted
 * from the least significant) of word i / 64 is set. Bits from num_pages on are ignored. Pages
 * that are not picked need not be mapped.
 *
 * Errors as with ibv_reg_mr_sg(); EINVAL also when the range goes beyond the address space.
 */
struct ibv_mr* ibv_reg_mr_bitmap(struct ibv_pd* pd, void* range, size_t num_pages,
                                 const uint64_t* bitmap, uint64_t mr_addr, size_t mr_offset,
                                 size_t mr_length, int access);

/* ---- Device memory ------------------------------------------------------------------------- */

enum ibv_dev_memcpy_type { IBV_DM_CPY_HOST_TO_DEVICE, IBV_DM_CPY_DEVICE_TO_HOST };

struct ibv_memcpy_dm_attr {
  enum ibv_dev_memcpy_type memcpy_type;
  void* host_addr;    /* from or to where */
  uint64_t dm_offset; /* into the device memory */
  size_t length;
  uint32_t comp_mask; /* 0 */
};

/*
 * Copies between host and device memory: ibv_memcpy_to_dm() or ibv_memcpy_from_dm(), on any
 * device. 0, or an errno value: EINVAL (a null pointer, comp_mask, memcpy_type, bytes outside of
 * the device memory).
 */
int ibv_memcpy_dm(struct ibv_dm* dm, struct ibv_memcpy_dm_attr* memcpy_dm_attr);

enum ibv_mem_type { IBV_HOST_MEM, IBV_DEV_MEM };

struct ibv_mr_attr {
  enum ibv_mem_type type;
  size_t length;
  int access; /* ibv_access_flags */
  union {
    struct {
      void* addr;
    } host_mem;
    struct {
      struct ibv_dm* dm;
      uint64_t offset; /* of the MR's first byte in dm */
    } dev_mem;
  } mem_type;
  uint32_t comp_mask; /* 0 */
};

/*
 * Registers host or device memory: ibv_reg_mr() or ibv_reg_dm_mr(), on any device. An MR of device
 * memory is zero-based, whether or not `access` says so. The device memory cannot be freed while
 * the MR is there.
 *
 * The MR, or null with errno as those calls set it; EINVAL also for a null pointer, comp_mask and
 * type.
 */
struct ibv_mr* ibv_reg_mr_ex(struct ibv_pd* pd, struct ibv_mr_attr* mr_attr);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */

#endif /* INFINIBAND_WEFT_VERBS_H */
