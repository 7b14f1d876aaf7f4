// Progress of both sides of a connection, for the diagnosis of one that hangs.
#pragma once

#include <cstdint>

namespace weftio::roce {

struct requester_standing {
    std::uint32_t acknowledged = 0, next = 0, sent = 0; ///< sequence numbers: see requester
    std::uint32_t packets_in_flight = 0, window = 0;
    std::uint32_t messages_in_flight = 0;
    std::uint8_t retries_left = 0, rnr_retries_left = 0; ///< rnr_retries_left 7: no limit
    bool waits_for_receiver = false;                     ///< the peer had no receive entry (RNR NAK)
    std::uint64_t deadline_ns = 0;                       ///< end of that wait, or of the wait for an answer; 0: none
};

} // namespace weftio::roce
