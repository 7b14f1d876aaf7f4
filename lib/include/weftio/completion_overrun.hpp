// What a completion queue does when it is full.
#pragma once

#include <cstdint>

namespace weftio {

enum class completion_overrun : std::uint8_t {
    hold,  ///< queues complete no entry and take no receive until the program has consumed completions
    fail,  ///< the completion queue and all its queues go to the error state, as on a hardware NIC
    ignore ///< unread completions are overwritten: the NIC never reads the consumer index (mlx5: `oi`)
};

} // namespace weftio
