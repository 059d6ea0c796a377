#include "verbs/card_layouts.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "hca/mlx5/backend.h"
#include "verbs/layout.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

namespace {

using Table = weft_mlx5_table;

/// There are carriers: until then no other MR is asked about.
std::atomic<bool> in_use{false};

const Table* load() noexcept {
  constexpr const char* name = "weft_mlx5_backend";
  // Of the program itself, or of the library beside this one.
  void* found = ::dlsym(RTLD_DEFAULT, name);
  Dl_info self{};
  if (found == nullptr && ::dladdr(reinterpret_cast<void*>(&has_card_layouts), &self) != 0) {
    try {
      std::string path = self.dli_fname;
      path = path.substr(0, path.find_last_of('/') + 1) + "libweft-mlx5.so";
      if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        found = ::dlsym(library, name);
      }
    } catch (const std::bad_alloc&) {
    }
  }
  if (found == nullptr) return nullptr;
  const Table* table = reinterpret_cast<const Table* (*)()>(found)();
  return table->abi == WEFT_MLX5_BACKEND_ABI ? table : nullptr;
}

const Table* backend() noexcept {
  static const Table* const table = load();
  return table;
}

/// Throws hca::Error with what the backend says.
template <class Call>
void ask(Call call) {
  char why[256] = "";
  if (const int code = call(*backend(), why, sizeof why)) refuse(code, why);
}

void check_flags(int flags) {
  check_known(flags);
  // The keys of a carrier never change: IBV_MR_SET_LAYOUT_AVOID_INVALIDATION is kept anyway.
  const int lacking = flags & ~int{IBV_MR_SET_LAYOUT_AVOID_INVALIDATION};
  if (lacking != 0) {
    refuse(EOPNOTSUPP, "flags " + std::to_string(lacking) + ": not on a card");
  }
}

template <class Entry>
void check_list(const char* what, int count, const Entry* list) {
  if (count < 1 || list == nullptr) {
    refuse(EINVAL, std::string(what) + " " + std::to_string(count) +
                       (list == nullptr ? ", and the list is null" : ""));
  }
}

int layout_error(int code) noexcept {
  if (code == 0) return 0;
  return code == EOPNOTSUPP ? IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED : IBV_MR_SET_LAYOUT_ERR_INPUT;
}

}  // namespace

bool has_card_layouts(const ibv_context* context) noexcept {
  return backend() != nullptr && backend()->supports(context) != 0;
}

ibv_mr* reg_card_carrier(ibv_pd* pd, unsigned access) {
  return guarded_pointer("ibv_reg_mr", [&] {
    ibv_mr* mr = nullptr;
    ask([&](const Table& table, char* why, std::size_t size) {
      return table.reg_carrier(pd, access, &mr, why, size);
    });
    in_use.store(true, std::memory_order_release);
    return mr;
  });
}

bool is_card_carrier(const ibv_mr* mr) noexcept {
  return in_use.load(std::memory_order_acquire) && backend()->is_carrier(mr) != 0;
}

int dereg_card_carrier(ibv_mr* mr) {
  return backend()->dereg_carrier(mr);
}

int query_card_layout_caps(ibv_context* context, ibv_mr_layout_caps* caps) {
  return guarded("ibv_query_mr_layout_caps", [&] {
    if (caps == nullptr) refuse(EINVAL, "caps is null");
    weft_mlx5_caps card{};
    ask([&](const Table& table, char* why, std::size_t size) {
      return table.query_caps(context, &card, why, size);
    });
    *caps = {};
    caps->cap_flags = IBV_MR_SET_LAYOUT_SG | IBV_MR_SET_LAYOUT_INTERLEAVED |
                      IBV_MR_SET_LAYOUT_INTERLEAVED_REPEAT |
                      IBV_MR_SET_LAYOUT_INTERLEAVED_NONUNIFORM_REPEAT;
    caps->max_num_sg = caps->max_inline_num_sg = card.max_num_sg;
    caps->max_num_interleaved = caps->max_inline_num_interleaved = card.max_num_interleaved;
    caps->max_mr_stride_dimension = card.max_mr_stride_dimension;
    caps->max_mr_nesting_level = card.max_mr_nesting_level;
    caps->max_datum_length = card.max_datum_length;
    caps->max_offset_stride = card.max_offset_stride;
  });
}

int set_card_layout_sg(ibv_mr* mr, int flags, int num_sge, const ibv_sge* sg_list) {
  return layout_error(guarded("ibv_mr_set_layout_sg", [&] {
    check_flags(flags);
    check_list("num_sge", num_sge, sg_list);
    ask([&](const Table& table, char* why, std::size_t size) {
      return table.set_layout_sg(mr, static_cast<std::uint32_t>(num_sge), sg_list, why, size);
    });
  }));
}

int set_card_layout_interleaved(ibv_mr* mr, int flags, int num_interleaved,
                                const ibv_mr_layout_interleaved* list) {
  return layout_error(guarded("ibv_mr_set_layout_interleaved", [&] {
    check_flags(flags);
    check_list("num_interleaved", num_interleaved, list);
    const auto count = static_cast<std::size_t>(num_interleaved);
    std::vector<weft_mlx5_interleaved> entries(count);
    // More dimensions than one are for the backend to refuse: it needs their number alone.
    std::vector<weft_mlx5_dimension> dims(count);
    for (std::size_t i = 0; i < count; ++i) {
      const ibv_mr_layout_interleaved& e = list[i];
      if (e.num_repeated < 1) refuse(EINVAL, "num_repeated " + std::to_string(e.num_repeated));
      if (e.num_dimensions < 0 || (e.num_dimensions > 0 && e.dims == nullptr)) {
        refuse(EINVAL, "num_dimensions " + std::to_string(e.num_dimensions) +
                           (e.dims == nullptr ? ", and dims is null" : ""));
      }
      if (e.num_dimensions > 0) dims[i] = {e.dims[0].offset_stride, e.dims[0].datum_count};
      entries[i] = {e.first_datum, static_cast<std::uint32_t>(e.num_repeated),
                    static_cast<std::uint32_t>(e.num_dimensions), &dims[i]};
    }
    ask([&](const Table& table, char* why, std::size_t size) {
      return table.set_layout_interleaved(mr, static_cast<std::uint32_t>(count), entries.data(),
                                          why, size);
    });
  }));
}

}  // namespace weft::verbs
