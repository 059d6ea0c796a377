// The state machine of QPs: which attributes each transition needs and allows (IB specification,
// table 91 and what follows it).
#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "verbs/log.hpp"
#include "verbs/queue_pair.hpp"

namespace weft::verbs {

namespace {

struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required[3];  ///< RC, UC, UD
  int optional[3];
};

constexpr int path = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int connected_init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int datagram_init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int uc_rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int rc_rtr = uc_rtr | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int rtr_optional = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int rc_rts =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int uc_change = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | path;
constexpr int rc_change = uc_change | IBV_QP_MIN_RNR_TIMER;
constexpr int ud_change = IBV_QP_CUR_STATE | IBV_QP_QKEY;
constexpr int rc_drained = IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
                           IBV_QP_PKEY_INDEX | rc_change;
constexpr int uc_drained = IBV_QP_AV | IBV_QP_PKEY_INDEX | uc_change;

constexpr std::array transitions{
    Transition{IBV_QPS_RESET, IBV_QPS_INIT, {connected_init, connected_init, datagram_init}, {}},
    Transition{IBV_QPS_INIT, IBV_QPS_INIT, {}, {connected_init, connected_init, datagram_init}},
    Transition{IBV_QPS_INIT,
               IBV_QPS_RTR,
               {rc_rtr, uc_rtr, 0},
               {rtr_optional, rtr_optional, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    Transition{IBV_QPS_RTR,
               IBV_QPS_RTS,
               {rc_rts, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN},
               {rc_change, uc_change, ud_change}},
    Transition{IBV_QPS_RTS, IBV_QPS_RTS, {}, {rc_change, uc_change, ud_change}},
    Transition{
        IBV_QPS_RTS,
        IBV_QPS_SQD,
        {},
        {IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY}},
    Transition{
        IBV_QPS_SQD, IBV_QPS_SQD, {}, {rc_drained, uc_drained, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
    Transition{IBV_QPS_SQD, IBV_QPS_RTS, {}, {rc_change, uc_change, ud_change}},
};

std::string name_of(ibv_qp_state state) {
  constexpr std::array names{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto index = static_cast<std::size_t>(state);
  return index < names.size() ? names[index] : std::to_string(index);
}

}  // namespace

void check_attributes(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  const int given = mask & ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return;
  const auto* const found = std::find_if(
      transitions.begin(), transitions.end(),
      [&](const Transition& transition) { return transition.from == from && transition.to == to; });
  if (found == transitions.end()) {
    refuse(EINVAL, "a QP does not go from " + name_of(from) + " to " + name_of(to));
  }
  const std::size_t column = type == IBV_QPT_RC ? 0 : type == IBV_QPT_UC ? 1 : 2;
  const int required = found->required[column];
  const int allowed = required | found->optional[column] | IBV_QP_CUR_STATE;
  if ((given & required) != required || (given & ~allowed) != 0) {
    refuse(EINVAL, "attribute mask " + std::to_string(given) + " from " + name_of(from) + " to " +
                       name_of(to) + ": " + std::to_string(required) + " is needed, " +
                       std::to_string(allowed) + " allowed");
  }
}

}  // namespace weft::verbs
