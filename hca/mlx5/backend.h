/*
 * Layout MRs on a card driven by libmlx5, as a table of C functions: the verbs front loads
 * libweft-mlx5.so when a program sets a layout on a context of such a card, and nothing else
 * depends on libmlx5.
 *
 * A layout MR is a carrier of its own with an indirect key of the card. Its keys stay the same
 * whatever layout it gets, and its addresses are offsets (zero-based). Its layouts refer to plain
 * MRs. Calls are thread safe, except that one carrier is used by one thread at a time.
 *
 * Functions return 0 or an errno value; with one, `why` (of `size` bytes, never null) names the
 * value and the limit: EINVAL (wrong input), EOPNOTSUPP (the card cannot do that) and errors of
 * the device's own. The old layout is valid then, but for EIO and ETIMEDOUT: the card failed, and
 * the carrier has none.
 */
#ifndef WEFT_HCA_MLX5_BACKEND_H
#define WEFT_HCA_MLX5_BACKEND_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_MLX5_BACKEND_ABI 1u

struct weft_mlx5_caps {
  uint32_t max_num_sg;
  uint32_t max_num_interleaved;     /* num_repeated counted as so many entries */
  uint32_t max_mr_stride_dimension; /* 1 */
  uint32_t max_mr_nesting_level;    /* 1 */
  uint64_t max_datum_length;
  uint64_t max_offset_stride; /* times num_repeated */
};

struct weft_mlx5_dimension {
  uint64_t offset_stride;
  uint64_t datum_count;
};

struct weft_mlx5_interleaved {
  struct ibv_sge first_datum;
  uint32_t num_repeated;
  uint32_t num_dimensions;
  const struct weft_mlx5_dimension* dims;
};

struct weft_mlx5_table {
  uint32_t abi; /* WEFT_MLX5_BACKEND_ABI */
  /* 1 when the context is of a card driven by libmlx5. */
  int (*supports)(const struct ibv_context* context);
  /* What a carrier on this card can get. */
  int (*query_caps)(struct ibv_context* context, struct weft_mlx5_caps* caps, char* why,
                    size_t size);
  /* A carrier without a layout; `access`: ibv_access_flags. The caller's until dereg_carrier, which
     comes before the PD is freed. */
  int (*reg_carrier)(struct ibv_pd* pd, unsigned int access, struct ibv_mr** mr, char* why,
                     size_t size);
  int (*is_carrier)(const struct ibv_mr* mr);
  int (*dereg_carrier)(struct ibv_mr* mr);
  /* Valid on return. `mr` is a carrier: EINVAL otherwise. */
  int (*set_layout_sg)(struct ibv_mr* mr, uint32_t num_sge, const struct ibv_sge* sg_list,
                       char* why, size_t size);
  int (*set_layout_interleaved)(struct ibv_mr* mr, uint32_t num_interleaved,
                                const struct weft_mlx5_interleaved* list, char* why, size_t size);
};

/* The one symbol of libweft-mlx5.so. */
const struct weft_mlx5_table* weft_mlx5_backend(void);

#ifdef __cplusplus
}
#endif

#endif
