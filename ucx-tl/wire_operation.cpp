#include "ucx-tl/wire_operation.hpp"

namespace weft::ucx::wire {

void OperationPool::grow() {
  chunks_.push_back(std::make_unique<WireOperation[]>(ops_per_chunk));
  for (std::size_t i = ops_per_chunk; i-- > 0;) put_back(&chunks_.back()[i]);
}

std::byte* OperationPool::acquire_staging() {
  if (staging_.empty()) {
    if (all_staging_.size() == max_staging) return nullptr;
    all_staging_.push_back(std::make_unique_for_overwrite<std::byte[]>(staging_bytes));
    return all_staging_.back().get();
  }
  std::byte* buffer = staging_.back();
  staging_.pop_back();
  return buffer;
}

}  // namespace weft::ucx::wire
