#include "tests/hca/mlx5/played_card.hpp"

#include <infiniband/mlx5dv.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "hca/emu/protection_domain.hpp"
#include "verbs/memory_region.hpp"
#include "verbs/protection_domain.hpp"

namespace weft::test {

PlayedCard& card() {
  static PlayedCard card;
  return card;
}

namespace {

using namespace hca;

struct Key : mlx5dv_mkey {
  std::uint32_t pd = 0;
  std::unique_ptr<emu::MemoryRegion> region;
};

struct Queue {
  mlx5dv_qp_ex layouts{};
  ibv_qp_ex* requests = nullptr;
  int (*complete)(ibv_qp_ex*) = nullptr;
};
// One at a time: the backend has one queue for a PD.
Queue queue;

/// What the work is in place of the card's: nothing, or something that fails.
void post_something() {
  ibv_qp_ex* qp = queue.requests;
  card().all_inline = card().all_inline && (qp->wr_flags & IBV_SEND_INLINE) != 0;
  qp->wr_flags = IBV_SEND_SIGNALED;
  qp->wr_rdma_write(qp, 0, 0);
  static std::uint8_t byte = 0;
  if (card().work_fails) qp->wr_set_inline_data(qp, &byte, 1);
}

void set(mlx5dv_mkey* which, const std::vector<Block>& blocks, unsigned access) {
  if (card().complete_fails != 0) return;
  auto& key = *static_cast<Key*>(which);
  const LayoutPtr layout = Layout::sg_list(blocks);
  key.region->replace({0, layout->size(), nullptr, layout, verbs::access_of(access), key.pd});
}

void wr_interleaved(mlx5dv_qp_ex* /*qp*/, mlx5dv_mkey* key, std::uint32_t access,
                    std::uint32_t repeat, std::uint16_t count, mlx5dv_mr_interleaved* data) {
  card().requests.push_back('s');
  post_something();
  std::vector<Block> blocks;
  for (std::uint32_t round = 0; round < repeat; ++round) {
    for (std::uint16_t i = 0; i < count; ++i) {
      const std::uint64_t stride = std::uint64_t{data[i].bytes_count} + data[i].bytes_skip;
      blocks.push_back(
          {static_cast<std::int64_t>(data[i].addr + round * stride), data[i].bytes_count});
    }
  }
  set(key, blocks, access);
}

void wr_list(mlx5dv_qp_ex* /*qp*/, mlx5dv_mkey* key, std::uint32_t access, std::uint16_t count,
             ibv_sge* sge) {
  card().requests.push_back('l');
  post_something();
  std::vector<Block> blocks;
  for (std::uint16_t i = 0; i < count; ++i) {
    blocks.push_back({static_cast<std::int64_t>(sge[i].addr), sge[i].length});
  }
  set(key, blocks, access);
}

void wr_local_inv(ibv_qp_ex* /*qp*/, std::uint32_t /*rkey*/) {
  card().requests.push_back('i');
}

int wr_complete(ibv_qp_ex* qp) {
  if (card().complete_fails == 0) return queue.complete(qp);
  qp->wr_abort(qp);
  return card().complete_fails;
}

}  // namespace
}  // namespace weft::test

using weft::test::card;

extern "C" {

bool mlx5dv_is_supported(ibv_device* /*device*/) {
  return true;
}

ibv_context* mlx5dv_open_device(ibv_device* device, mlx5dv_context_attr* /*attr*/) {
  return ibv_open_device(device);
}

ibv_qp* mlx5dv_create_qp(ibv_context* context, ibv_qp_init_attr_ex* attr,
                         mlx5dv_qp_init_attr* /*card*/) {
  if (attr->cap.max_inline_data > card().most_inline) {
    errno = ENOMEM;
    return nullptr;
  }
  ibv_qp_init_attr_ex own = *attr;
  own.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;
  own.cap.max_inline_data = 64;
  ibv_qp* qp = ibv_create_qp_ex(context, &own);
  weft::test::queue.requests = ibv_qp_to_qp_ex(qp);
  weft::test::queue.complete =
      std::exchange(weft::test::queue.requests->wr_complete, weft::test::wr_complete);
  weft::test::queue.requests->wr_local_inv = weft::test::wr_local_inv;
  return qp;
}

mlx5dv_qp_ex* mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_ex* /*qp*/) {
  weft::test::queue.layouts.wr_mr_interleaved = weft::test::wr_interleaved;
  weft::test::queue.layouts.wr_mr_list = weft::test::wr_list;
  return &weft::test::queue.layouts;
}

mlx5dv_mkey* mlx5dv_create_mkey(mlx5dv_mkey_init_attr* attr) {
  auto key = std::make_unique<weft::test::Key>();
  auto& pd = *weft::verbs::ProtectionDomain::of(attr->pd).core;
  key->pd = pd.number();
  key->region = pd.register_region({0, 0, nullptr, nullptr, weft::hca::Access::none, key->pd});
  key->lkey = key->region->lkey();
  key->rkey = key->region->rkey();
  card().key_entries = attr->max_entries;
  ++card().keys;
  return key.release();
}

int mlx5dv_destroy_mkey(mlx5dv_mkey* key) {
  --card().keys;
  delete static_cast<weft::test::Key*>(key);
  return 0;
}

}  // extern "C"
