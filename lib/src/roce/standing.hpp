// How far both sides of a connection have come: for somebody who looks at one that hangs.
#pragma once

#include <cstdint>

namespace weftio::roce {

struct requester_standing {
    std::uint32_t acknowledged = 0, next = 0, sent = 0; ///< sequence numbers: see requester
    std::uint32_t packets_in_flight = 0, window = 0;
    std::uint32_t messages_in_flight = 0;
    std::uint8_t retries_left = 0, rnr_retries_left = 0; ///< of the latter 7: without end
    bool waits_for_receiver = false;                     ///< the peer had no receive
    std::uint64_t deadline_ns = 0;                       ///< of that, or of the answer; 0: none
};

} // namespace weftio::roce
