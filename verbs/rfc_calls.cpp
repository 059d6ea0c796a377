// The calls of infiniband/weft_verbs.h: to the device that the object is on.
#include <cerrno>
#include <cstring>
#include <string>

#include "verbs/card_layouts.hpp"
#include "verbs/context.hpp"
#include "verbs/infiniband/weft_verbs.h"
#include "verbs/layout.hpp"
#include "verbs/log.hpp"
#include "verbs/page_list.hpp"

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

using weft::verbs::is_ours;

namespace {

/// What a program put into an enumeration, whether or not it is one of its values.
template <class Enumeration>
unsigned number_of(const Enumeration& value) {
  unsigned number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

/// On a device that has no such calls.
template <class Result>
Result unsupported(Result result) {
  errno = EOPNOTSUPP;
  return result;
}

/// True, with errno and a line for people, when `call` was given no object.
bool is_missing(const char* call, const char* name, const void* object) noexcept {
  if (object != nullptr) return false;
  weft::verbs::log_refusal(call, EINVAL, std::string(name) + " is null");
  errno = EINVAL;
  return true;
}

}  // namespace

WEFT_EXPORT int ibv_query_mr_layout_caps(ibv_context* context, ibv_mr_layout_caps* caps) {
  using namespace weft::verbs;
  if (is_missing(__func__, "context", context)) return EINVAL;
  if (!is_ours(context)) {
    return has_card_layouts(context) ? query_card_layout_caps(context, caps)
                                     : unsupported(EOPNOTSUPP);
  }
  return query_mr_layout_caps(context, caps);
}

WEFT_EXPORT int ibv_mr_set_layout_sg(ibv_mr* mr, int flags, int num_sge, const ibv_sge* sg_list) {
  using namespace weft::verbs;
  if (is_missing(__func__, "mr", mr)) return IBV_MR_SET_LAYOUT_ERR_INPUT;
  if (!is_ours(mr->context)) {
    return has_card_layouts(mr->context) ? set_card_layout_sg(mr, flags, num_sge, sg_list)
                                         : unsupported(int{IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED});
  }
  return set_layout_sg(mr, flags, num_sge, sg_list);
}

WEFT_EXPORT int ibv_mr_set_layout_interleaved(ibv_mr* mr, int flags, int num_interleaved,
                                              const ibv_mr_layout_interleaved* interleaved_list) {
  using namespace weft::verbs;
  if (is_missing(__func__, "mr", mr)) return IBV_MR_SET_LAYOUT_ERR_INPUT;
  if (!is_ours(mr->context)) {
    return has_card_layouts(mr->context)
               ? set_card_layout_interleaved(mr, flags, num_interleaved, interleaved_list)
               : unsupported(int{IBV_MR_SET_LAYOUT_ERR_UNSUPPORTED});
  }
  return set_layout_interleaved(mr, flags, num_interleaved, interleaved_list);
}

WEFT_EXPORT int ibv_post_mr_layout(ibv_qp* qp, ibv_mr* mr, std::uint64_t wr_id,
                                   unsigned int send_flags) {
  if (is_missing(__func__, "qp", qp) || is_missing(__func__, "mr", mr)) return EINVAL;
  if (!is_ours(qp->context)) return unsupported(EOPNOTSUPP);
  return weft::verbs::post_mr_layout(qp, mr, wr_id, send_flags);
}

WEFT_EXPORT ibv_mr* ibv_reg_mr_sg(ibv_pd* pd, void* const* pages, std::size_t num_pages,
                                  std::uint64_t mr_addr, std::size_t mr_offset,
                                  std::size_t mr_length, int access) {
  if (is_missing(__func__, "pd", pd)) return nullptr;
  if (!is_ours(pd->context)) return unsupported<ibv_mr*>(nullptr);
  return weft::verbs::reg_mr_sg(pd, pages, num_pages, mr_addr, mr_offset, mr_length, access);
}

WEFT_EXPORT ibv_mr* ibv_reg_mr_bitmap(ibv_pd* pd, void* range, std::size_t num_pages,
                                      const std::uint64_t* bitmap, std::uint64_t mr_addr,
                                      std::size_t mr_offset, std::size_t mr_length, int access) {
  if (is_missing(__func__, "pd", pd)) return nullptr;
  if (!is_ours(pd->context)) return unsupported<ibv_mr*>(nullptr);
  return weft::verbs::reg_mr_bitmap(pd, range, num_pages, bitmap, mr_addr, mr_offset, mr_length,
                                    access);
}

// The device-memory RFC's forms of what upstream has: they go through upstream's.

WEFT_EXPORT int ibv_memcpy_dm(ibv_dm* dm, ibv_memcpy_dm_attr* attr) {
  return weft::verbs::guarded("ibv_memcpy_dm", [&] {
    using weft::verbs::refuse;
    if (dm == nullptr || attr == nullptr) refuse(EINVAL, "dm or the attributes are null");
    if (attr->comp_mask != 0) refuse(EINVAL, "comp_mask " + std::to_string(attr->comp_mask));
    if (attr->host_addr == nullptr && attr->length != 0) refuse(EINVAL, "host_addr is null");
    int code = 0;
    switch (number_of(attr->memcpy_type)) {
      case IBV_DM_CPY_HOST_TO_DEVICE:
        code = ::ibv_memcpy_to_dm(dm, attr->dm_offset, attr->host_addr, attr->length);
        break;
      case IBV_DM_CPY_DEVICE_TO_HOST:
        code = ::ibv_memcpy_from_dm(attr->host_addr, dm, attr->dm_offset, attr->length);
        break;
      default:
        refuse(EINVAL, "memcpy_type " + std::to_string(number_of(attr->memcpy_type)));
    }
    if (code != 0) {
      refuse(code, std::to_string(attr->length) + " bytes at " + std::to_string(attr->dm_offset));
    }
  });
}

WEFT_EXPORT ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_attr* attr) {
  return weft::verbs::guarded_pointer("ibv_reg_mr_ex", [&]() -> ibv_mr* {
    using weft::verbs::refuse;
    if (pd == nullptr || attr == nullptr) refuse(EINVAL, "pd or the attributes are null");
    if (attr->comp_mask != 0) refuse(EINVAL, "comp_mask " + std::to_string(attr->comp_mask));
    const auto access = static_cast<unsigned>(attr->access);
    ibv_mr* mr = nullptr;
    switch (number_of(attr->type)) {
      case IBV_HOST_MEM:
        mr = ibv_reg_mr(pd, attr->mem_type.host_mem.addr, attr->length, access);
        break;
      case IBV_DEV_MEM:
        if (attr->mem_type.dev_mem.dm == nullptr) refuse(EINVAL, "dm is null");
        mr = ibv_reg_dm_mr(pd, attr->mem_type.dev_mem.dm, attr->mem_type.dev_mem.offset,
                           attr->length, access | IBV_ACCESS_ZERO_BASED);
        break;
      default:
        refuse(EINVAL, "type " + std::to_string(number_of(attr->type)));
    }
    if (mr == nullptr) refuse(errno, std::to_string(attr->length) + " bytes were not registered");
    return mr;
  });
}
