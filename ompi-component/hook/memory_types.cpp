#include "ompi-component/hook/memory_types.hpp"

#include <ucp/api/ucp.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "ompi-component/hook/hook.hpp"
#include "ompi-component/hook/import_table.hpp"
#include "ompi-component/hook/log.hpp"
#include "ompi-component/hook/ucp_library.hpp"

namespace weft::ompi {
namespace {

decltype(&ucp_tag_send_nbx) real_send;
decltype(&ucp_tag_send_sync_nbx) real_send_sync;
decltype(&ucp_tag_recv_nbx) real_recv;
decltype(&ucp_tag_msg_recv_nbx) real_msg_recv;
decltype(&ucp_request_free) real_free;
ucx::TransportApi::Addresses windows;
bool rendezvous_by_itself;  ///< UCP chooses where it begins

bool is_window(const void* buffer) noexcept {
  return reinterpret_cast<std::uintptr_t>(buffer) - windows.start < windows.length;
}

ucp_request_param_t with_memory_type(const ucp_request_param_t& param,
                                     ucs_memory_type_t type) noexcept {
  ucp_request_param_t told = param;
  told.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  told.memory_type = type;
  return told;
}

ucp_request_param_t received_with_window(const ucp_request_param_t& param) noexcept {
  return with_memory_type(param, hook.transport->window_memory_type);
}

ucp_request_param_t sent_with_window(const ucp_request_param_t& param, const void* window,
                                     std::size_t bytes) noexcept {
  return with_memory_type(param, rendezvous_by_itself
                                     ? hook.transport->memory_type_for_send(window, bytes)
                                     : hook.transport->window_memory_type);
}

// Without immediate completion UCP does not try to send straight from the buffer, which it does
// before it looks at the memory type.
ucp_request_param_t not_sent_at_once(ucp_request_param_t param) noexcept {
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return param;
}

ucs_status_ptr_t send_nbx(ucp_ep_h ep, const void* buffer, std::size_t count, ucp_tag_t tag,
                          const ucp_request_param_t* param) {
  if (!is_window(buffer)) [[likely]]
    return real_send(ep, buffer, count, tag, param);
  const ucp_request_param_t told = not_sent_at_once(sent_with_window(*param, buffer, count));
  return real_send(ep, buffer, count, tag, &told);
}

ucs_status_ptr_t recv_nbx(ucp_worker_h worker, void* buffer, std::size_t count, ucp_tag_t tag,
                          ucp_tag_t mask, const ucp_request_param_t* param) {
  if (!is_window(buffer)) [[likely]]
    return real_recv(worker, buffer, count, tag, mask, param);
  const ucp_request_param_t told = received_with_window(*param);
  return real_recv(worker, buffer, count, tag, mask, &told);
}

// The calls of UCP's first generation, which are the others with these parameters.

/// Their callbacks take one argument less, which UCP itself passes to them all the same.
template <typename To, typename From>
To with_one_argument_more(From* callback) noexcept {
  return reinterpret_cast<To>(reinterpret_cast<void (*)()>(callback));
}

ucp_request_param_t parameters(ucp_datatype_t datatype) noexcept {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK;
  param.datatype = datatype;
  return param;
}

ucp_request_param_t send_parameters(ucp_datatype_t datatype,
                                    ucp_send_callback_t callback) noexcept {
  ucp_request_param_t param = parameters(datatype);
  param.cb.send = with_one_argument_more<ucp_send_nbx_callback_t>(callback);
  return param;
}

ucp_request_param_t receive_parameters(const void* buffer, ucp_datatype_t datatype,
                                       ucp_tag_recv_callback_t callback) noexcept {
  ucp_request_param_t param = parameters(datatype);
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = with_one_argument_more<ucp_tag_recv_nbx_callback_t>(callback);
  return is_window(buffer) ? received_with_window(param) : param;
}

// A send of the first generation that is complete at once calls no callback, and pml/ucx counts on
// it for its persistent requests. With what a window needs (not_sent_at_once) UCP calls one, as the
// last thing before it returns: it is kept until it is known whose it is.

struct Completion {
  void* request;
  ucs_status_t status;
  ucp_send_callback_t callback;

  void tell() const {
    if (request != nullptr) callback(request, status);
  }
};
thread_local Completion* last_completion = nullptr;  ///< while a send is being posted

void send_complete(void* request, ucs_status_t status, void* callback) {
  const Completion completion{request, status, reinterpret_cast<ucp_send_callback_t>(callback)};
  if (last_completion == nullptr) return completion.tell();
  const Completion earlier = std::exchange(*last_completion, completion);
  earlier.tell();
}

ucs_status_ptr_t send_window(ucp_ep_h ep, const void* buffer, std::size_t count, ucp_tag_t tag,
                             ucp_datatype_t datatype, ucp_send_callback_t callback) {
  ucp_request_param_t param =
      not_sent_at_once(sent_with_window(parameters(datatype), buffer, count));
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = send_complete;
  param.user_data = reinterpret_cast<void*>(callback);
  Completion completion{};
  last_completion = &completion;
  ucs_status_ptr_t request = real_send(ep, buffer, count, tag, &param);
  last_completion = nullptr;
  if (completion.request != request) {
    completion.tell();
    return request;
  }
  if (request != nullptr) real_free(request);
  return UCS_STATUS_PTR(completion.status);
}

ucs_status_ptr_t send_nb(ucp_ep_h ep, const void* buffer, std::size_t count,
                         ucp_datatype_t datatype, ucp_tag_t tag, ucp_send_callback_t callback) {
  if (is_window(buffer)) return send_window(ep, buffer, count, tag, datatype, callback);
  const ucp_request_param_t param = send_parameters(datatype, callback);
  return real_send(ep, buffer, count, tag, &param);
}

// It never sends straight from the buffer.
ucs_status_ptr_t send_sync_nb(ucp_ep_h ep, const void* buffer, std::size_t count,
                              ucp_datatype_t datatype, ucp_tag_t tag,
                              ucp_send_callback_t callback) {
  ucp_request_param_t param = send_parameters(datatype, callback);
  if (is_window(buffer)) param = sent_with_window(param, buffer, count);
  return real_send_sync(ep, buffer, count, tag, &param);
}

ucs_status_ptr_t recv_nb(ucp_worker_h worker, void* buffer, std::size_t count,
                         ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t mask,
                         ucp_tag_recv_callback_t callback) {
  const ucp_request_param_t param = receive_parameters(buffer, datatype, callback);
  return real_recv(worker, buffer, count, tag, mask, &param);
}

ucs_status_ptr_t msg_recv_nb(ucp_worker_h worker, void* buffer, std::size_t count,
                             ucp_datatype_t datatype, ucp_tag_message_h message,
                             ucp_tag_recv_callback_t callback) {
  const ucp_request_param_t param = receive_parameters(buffer, datatype, callback);
  return real_msg_recv(worker, buffer, count, message, &param);
}

/// One function that pml/ucx may call, ours instead of it, and where to put that.
struct Call {
  const char* name;
  void* ours;
  void** import = nullptr;
  void* before = nullptr;
};

template <typename Function>
Call call(const char* name, Function* ours) noexcept {
  return {name, reinterpret_cast<void*>(ours)};
}

std::array calls = {
    call("ucp_tag_send_nbx", send_nbx),         call("ucp_tag_send_nb", send_nb),
    call("ucp_tag_send_sync_nb", send_sync_nb), call("ucp_tag_recv_nbx", recv_nbx),
    call("ucp_tag_recv_nb", recv_nb),           call("ucp_tag_msg_recv_nb", msg_recv_nb)};

/// Other ways to hand a buffer to UCP: a pml/ucx that knows them is not the one we know.
constexpr std::array unknown_calls = {"ucp_tag_send_nbr", "ucp_tag_send_sync_nbx",
                                      "ucp_tag_recv_nbr", "ucp_tag_msg_recv_nbx"};

bool look_up_ucp(void* ucp) noexcept {
  return look_up(ucp, "ucp_tag_send_nbx", real_send) &&
         look_up(ucp, "ucp_tag_send_sync_nbx", real_send_sync) &&
         look_up(ucp, "ucp_tag_recv_nbx", real_recv) &&
         look_up(ucp, "ucp_tag_msg_recv_nbx", real_msg_recv) &&
         look_up(ucp, "ucp_request_free", real_free);
}

using Text = std::unique_ptr<char, decltype(&std::free)>;

/// UCP's settings, from variables and from UCX's file of them, a line each; null when it does not
/// tell them.
Text settings_of(void* ucp) noexcept {
  decltype(&ucp_config_read) read = nullptr;
  decltype(&ucp_config_print) print = nullptr;
  decltype(&ucp_config_release) release = nullptr;
  ucp_config_t* config = nullptr;
  if (!look_up(ucp, "ucp_config_read", read) || !look_up(ucp, "ucp_config_print", print) ||
      !look_up(ucp, "ucp_config_release", release) || read("MPI", nullptr, &config) != UCS_OK)
    return {nullptr, std::free};
  char* text = nullptr;
  std::size_t length = 0;
  if (FILE* file = open_memstream(&text, &length)) {
    print(config, file, "", UCS_CONFIG_PRINT_CONFIG);
    std::fclose(file);
  }
  release(config);
  return {text, std::free};
}

bool has_line(const Text& settings, const char* line) noexcept {
  return settings != nullptr && std::strstr(settings.get(), line) != nullptr;
}

/// UCP's newer protocols look every buffer up, whatever they are told.
bool takes_our_word_for_it(const Text& settings) noexcept {
  return has_line(settings, "UCX_PROTO_ENABLE=n\n") &&
         has_line(settings, "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=cuda\n");
}

void put_back() noexcept {
  for (Call& each : calls) {
    if (each.import != nullptr && *each.import == each.ours) set_import(each.import, each.before);
    each.import = nullptr;
  }
}

bool put_ours() noexcept {
  const void* pml = reinterpret_cast<const void*>(original.pml_send);
  for (const char* name : unknown_calls)
    if (import_of(pml, name) != nullptr) return false;
  void* ucp = loaded_ucp();
  if (ucp == nullptr || !look_up_ucp(ucp)) return false;
  const Text settings = settings_of(ucp);
  if (!takes_our_word_for_it(settings)) return false;
  rendezvous_by_itself = has_line(settings, "UCX_RNDV_THRESH=auto\n");
  for (Call& each : calls) {
    each.import = import_of(pml, each.name);
    if (each.import == nullptr) return false;
  }
  for (Call& each : calls) {
    each.before = *each.import;
    if (!set_import(each.import, each.ours)) {
      each.import = nullptr;
      return false;
    }
  }
  return true;
}

}  // namespace

void tell_memory_types() {
  windows = hook.transport->window_addresses();
  if (put_ours()) return;
  put_back();
  hook.transport->announce();
  tell(1, "UCX looks every buffer up: it cannot be told what is a window");
}

}  // namespace weft::ompi
