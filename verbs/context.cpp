#include "verbs/context.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "hca/emu/device_file.hpp"
#include "verbs/log.hpp"

namespace weft::verbs {

Device::Device() : ibv_device{} {
  node_type = IBV_NODE_CA;
  transport_type = IBV_TRANSPORT_IB;
  const std::string device_name = hca::emu::device_from("WEFT_DEVICE");
  std::strncpy(name, device_name.c_str(), sizeof name - 1);
  std::strncpy(dev_name, ("uverbs-" + device_name).c_str(), sizeof dev_name - 1);
  std::strncpy(dev_path, ("/sys/class/infiniband_verbs/uverbs-" + device_name).c_str(),
               sizeof dev_path - 1);
  std::strncpy(ibdev_path, ("/sys/class/infiniband/" + device_name).c_str(), sizeof ibdev_path - 1);
}

Device& device() {
  // Never destroyed: programs hold pointers to it until their last destructor has run.
  static Device* const device = new Device;
  return *device;
}

Context::Context() : verbs_context{} {
  hca::emu::ContextOptions options;
  options.device = device().name;
  options.purpose = "verbs";
  core = hca::emu::Context::open(options);
  sz = sizeof(verbs_context);
  context.device = &device();
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.async_fd = async_events.fd();
  // Programs may duplicate it; there is nothing to be had from it.
  context.cmd_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  context.num_comp_vectors = 1;
  ::pthread_mutex_init(&context.mutex, nullptr);
  set_operations(*this);
}

Context::~Context() {
  ::close(context.cmd_fd);
  ::pthread_mutex_destroy(&context.mutex);
}

std::shared_ptr<hca::emu::Link> Context::link_to(std::uint32_t qp_num) {
  const std::uint32_t entry = qp_num >> hca::emu::qp_index_bits;
  const std::scoped_lock guard(links_mutex_);
  auto& link = links_[entry];
  if (link && link->alive()) return link;
  link.reset();
  try {
    if (const auto peer = core->owner_of_qp(qp_num)) link = core->connect(*peer);
  } catch (const hca::Error&) {
    // As on a network: what is sent to nobody is lost.
  }
  return link;
}

bool names_us(const Context& context, const ibv_ah_attr& attr) noexcept {
  if (attr.is_global != 0) {
    const ibv_gid own = gid_of(context);
    return std::memcmp(&own, &attr.grh.dgid, sizeof own) == 0;
  }
  return attr.dlid == only_lid;
}

void check_address(const ibv_ah_attr& attr) {
  if (attr.port_num != only_port) {
    refuse(EINVAL, "port " + std::to_string(attr.port_num) + ", the device has port 1");
  }
  if (attr.is_global != 0) check_limit(EINVAL, "sgid_index", attr.grh.sgid_index, 0);
}

ibv_gid gid_of(const Context& context) noexcept {
  ibv_gid gid;
  const auto bytes = context.core->gid();
  std::memcpy(&gid, bytes.data(), sizeof gid);
  return gid;
}

}  // namespace weft::verbs
