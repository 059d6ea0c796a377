// A card played by the test: the functions of libmlx5 that the backend calls, over the emulated
// device. Its indirect keys are layout MRs of the emulated device, set when the work request is
// posted, so that what the backend tells the card can be seen in the bytes that move.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::test {

struct PlayedCard {
  /// Work requests for layouts since the last look: `i` LOCAL_INV, `s` strided, `l` list.
  std::vector<char> requests;
  bool all_inline = true;           ///< each layout was posted with IBV_SEND_INLINE
  std::uint16_t key_entries = 0;    ///< asked for by the last key
  std::uint32_t most_inline = 512;  ///< a QP with more inline data is refused
  int complete_fails = 0;           ///< what ibv_wr_complete returns instead of posting
  bool work_fails = false;          ///< the work completes with an error
  int keys = 0;                     ///< that exist
};

PlayedCard& card();

}  // namespace weft::test
