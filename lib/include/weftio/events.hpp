// What the host learns of entries of a send queue.
#pragma once

#include <cstdint>
#include <string>

#include "weftio/refusal.hpp"

namespace weftio {

/// An entry that was executed and had asked for this: WEFTIO_DEV_SEND_NOTIFY.
struct send_notification {
    std::uint32_t queue = 0;
    std::uint32_t position = 0; ///< free-running index
    std::uint64_t time_ns = 0;  ///< UTC, when the port was done with it, or the copy
};

/// What an event is about: an entry of the send ring; of an rdma_queue also a receive, or no entry of its own, as when
/// a request of the peer's is refused.
enum class outcome_of : std::uint8_t { send_ring, receive_ring, none };

/// An entry that could not be executed.
struct send_failure {
    std::uint32_t queue = 0;
    std::uint32_t position = 0;
    std::uint8_t syndrome = 0; ///< enum weftio_syndrome
    std::string text;          ///< queue, position, reason
    std::uint64_t time_ns = 0;
    outcome_of what = outcome_of::send_ring;
    refusal reason = refusal::none; ///< finer than the syndrome; none: the NIC does not tell
};

} // namespace weftio
