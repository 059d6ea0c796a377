#include "hca/mlx5/backend.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hca/mlx5/layout_region.hpp"

namespace weft::hca::mlx5 {

namespace {

struct Carrier : ibv_mr {
  Carrier(std::shared_ptr<LayoutQueue> queue, unsigned access)
      : ibv_mr{}, region(std::move(queue), access) {}
  LayoutRegion region;
};

/// What there is in this process: a queue for each PD with carriers, and the carriers by lkey.
struct Registry {
  std::mutex mutex;
  std::map<ibv_pd*, std::weak_ptr<LayoutQueue>> queues;
  std::map<std::uint32_t, const Carrier*> carriers;

  std::shared_ptr<LayoutQueue> queue_of(ibv_pd* pd) {
    const std::scoped_lock guard(mutex);
    std::erase_if(queues, [](const auto& entry) { return entry.second.expired(); });
    std::shared_ptr<LayoutQueue> queue = queues[pd].lock();
    if (!queue) {
      queue = std::make_shared<LayoutQueue>(pd);
      queues[pd] = queue;
    }
    return queue;
  }
  bool has(const ibv_mr* mr) {
    const std::scoped_lock guard(mutex);
    return std::any_of(carriers.begin(), carriers.end(),
                       [mr](const auto& entry) { return entry.second == mr; });
  }
  void refuse_carrier(std::uint32_t lkey) {
    const std::scoped_lock guard(mutex);
    if (carriers.contains(lkey)) {
      throw Error(EOPNOTSUPP, "lkey " + std::to_string(lkey) +
                                  " is of a layout MR: the card's layouts are over plain ones, "
                                  "nesting level 1");
    }
  }
};

Registry& registry() {
  // Never destroyed: programs deregister until their last destructor has run.
  static auto* const registry = new Registry;
  return *registry;
}

template <class Body>
int guarded(char* why, std::size_t size, Body body) noexcept {
  const auto failed = [&](int code, const char* what) {
    std::snprintf(why, size, "%s", what);
    return code;
  };
  try {
    body();
    return 0;
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::exception& error) {
    return failed(ENOMEM, error.what());
  }
}

Carrier& carrier_of(ibv_mr* mr) {
  if (!registry().has(mr)) {
    throw Error(EINVAL,
                "the MR is no carrier of a layout: ibv_reg_mr(pd, NULL, 0, IBV_ACCESS_ZERO_BASED)");
  }
  return static_cast<Carrier&>(*mr);
}

int supports(const ibv_context* context) {
  return has_layouts(context) ? 1 : 0;
}

int query_caps(ibv_context* context, weft_mlx5_caps* caps, char* why, std::size_t size) {
  return guarded(why, size, [&] {
    // How long a work request can be is known once there is a QP.
    const Handle<ibv_pd, ibv_dealloc_pd> pd(made(ibv_alloc_pd(context), "no PD"));
    const CardLimits limits = LayoutQueue(pd.get()).limits();
    *caps = {limits.max_list,       limits.max_interleaved, 1, 1,
             CardLimits::max_block, CardLimits::max_stride};
  });
}

int reg_carrier(ibv_pd* pd, unsigned access, ibv_mr** mr, char* why, std::size_t size) {
  return guarded(why, size, [&] {
    constexpr unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                               IBV_ACCESS_ZERO_BASED;
    if ((access & ~known) != 0) {
      throw Error(EOPNOTSUPP, "access flags " + std::to_string(access) + ", layouts have " +
                                  std::to_string(known));
    }
    auto carrier = std::make_unique<Carrier>(
        registry().queue_of(pd), access & ~static_cast<unsigned>(IBV_ACCESS_ZERO_BASED));
    carrier->context = pd->context;
    carrier->pd = pd;
    carrier->lkey = carrier->region.lkey();
    carrier->rkey = carrier->region.rkey();
    const std::scoped_lock guard(registry().mutex);
    registry().carriers[carrier->lkey] = carrier.get();
    *mr = carrier.release();
  });
}

int is_carrier(const ibv_mr* mr) {
  return registry().has(mr) ? 1 : 0;
}

int dereg_carrier(ibv_mr* mr) {
  char why[1];
  return guarded(why, sizeof why, [&] {
    Carrier& carrier = carrier_of(mr);
    {
      const std::scoped_lock guard(registry().mutex);
      registry().carriers.erase(carrier.lkey);
    }
    delete &carrier;
  });
}

int set_layout_sg(ibv_mr* mr, std::uint32_t num_sge, const ibv_sge* sg_list, char* why,
                  std::size_t size) {
  return guarded(why, size, [&] {
    Carrier& carrier = carrier_of(mr);
    const std::span list(sg_list, num_sge);
    for (const ibv_sge& sge : list) registry().refuse_carrier(sge.lkey);
    carrier.region.set(list_of(list, carrier.region.queue().limits()));
    carrier.length = carrier.region.length();
  });
}

int set_layout_interleaved(ibv_mr* mr, std::uint32_t num_interleaved,
                           const weft_mlx5_interleaved* list, char* why, std::size_t size) {
  return guarded(why, size, [&] {
    Carrier& carrier = carrier_of(mr);
    const CardLimits& limits = carrier.region.queue().limits();
    std::vector<InterleavedEntry> entries;
    std::vector<DatumDimension> dims;
    // One dimension each: more are refused by their number, before they are looked at.
    dims.reserve(num_interleaved);
    for (const weft_mlx5_interleaved& e : std::span(list, num_interleaved)) {
      registry().refuse_carrier(e.first_datum.lkey);
      if (e.num_dimensions > 1) {
        throw Error(EOPNOTSUPP, "number of dimensions " + std::to_string(e.num_dimensions) +
                                    ", the card's limit is 1");
      }
      if (e.num_dimensions == 1) dims.push_back({e.dims->offset_stride, e.dims->datum_count});
      entries.push_back({e.first_datum, e.num_repeated,
                         e.num_dimensions == 1 ? std::span<const DatumDimension>(&dims.back(), 1)
                                               : std::span<const DatumDimension>{}});
    }
    carrier.region.set(interleaved_of(entries, limits));
    carrier.length = carrier.region.length();
  });
}

}  // namespace

}  // namespace weft::hca::mlx5

extern "C" __attribute__((visibility("default"))) const weft_mlx5_table* weft_mlx5_backend() {
  using namespace weft::hca::mlx5;
  static const weft_mlx5_table table = {WEFT_MLX5_BACKEND_ABI,
                                        supports,
                                        query_caps,
                                        reg_carrier,
                                        is_carrier,
                                        dereg_carrier,
                                        set_layout_sg,
                                        set_layout_interleaved};
  return &table;
}
