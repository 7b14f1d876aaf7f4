// Events about entries of a queue that a progress_engine delivers to the host.
#pragma once

#include <cstdint>
#include <string>

#include "weftio/refusal.hpp"

namespace weftio {

/// An executed entry that had the flag WEFTIO_DEV_SEND_NOTIFY.
struct send_notification {
    std::uint32_t queue = 0;
    std::uint32_t position = 0; ///< free-running index
    std::uint64_t time_ns = 0;  ///< UTC time at which the port was done with the entry, or the copy was done
};

/// What an event is about: an entry of the send ring. For an rdma_queue also an entry of the receive ring, or no entry,
/// for example when a request of the peer is refused.
enum class outcome_of : std::uint8_t { send_ring, receive_ring, none };

/// An entry that could not be executed.
struct send_failure {
    std::uint32_t queue = 0;
    std::uint32_t position = 0;
    std::uint8_t syndrome = 0; ///< enum weftio_syndrome
    std::string text;          ///< queue, position, reason
    std::uint64_t time_ns = 0;
    outcome_of what = outcome_of::send_ring;
    refusal reason = refusal::none; ///< finer than the syndrome; none: the NIC does not report it
};

} // namespace weftio
