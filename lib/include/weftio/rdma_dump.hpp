// What a queue pair waits for, and what it has done last: for a look at one that hangs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weftio/rdma_state.hpp"
#include "weftio/refusal.hpp"

namespace weftio {

/// What a requester waits for before it can go on.
enum class rdma_awaits : std::uint8_t {
    nothing,
    answer,  ///< an acknowledgment or data: `ends_in_ns` until it repeats; 0 where timeout is 0, for ever
    receiver ///< the peer had no receive: `ends_in_ns` until it asks again
};
const char* to_string(rdma_awaits what) noexcept;

/// An entry that the NIC has begun and not ended.
struct rdma_dump_entry {
    std::uint32_t position = 0; ///< free-running index
    std::uint8_t opcode = 0;    ///< of the entry: WEFTIO_OPCODE_*
    std::uint32_t bytes = 0;
    std::uint32_t first_psn = 0;
    std::uint32_t packets = 0; ///< sequence numbers that it takes; 0 of a NOP
};

/// Requests that were refused for one reason.
struct rdma_refused {
    refusal reason = refusal::none;
    std::uint64_t count = 0;
};

/// A snapshot between two turns. Numbers of a side that is not there yet are 0.
struct rdma_dump {
    static constexpr std::size_t most_entries = 8;

    std::uint32_t number = 0;
    rdma_state state = rdma_state::init;
    std::uint64_t turns = 0; ///< that the queue pair had at its engine; one that waits has next to none

    // The connection; empty before RTR.
    bool connected = false;
    bool reliable = true;
    bool same_port = false; ///< the peer is at this port: no packet goes to the driver
    std::string address, peer_address;
    std::array<std::uint8_t, 6> peer_mac{};
    std::uint32_t peer_queue = 0;
    std::uint32_t path_mtu = 0;
    std::uint8_t dscp = 0;
    std::uint8_t hop_limit = 0;

    // Requests of this end: acknowledged <= next <= sent, modulo 2^24.
    std::uint32_t acknowledged_psn = 0; ///< everything before it is answered
    std::uint32_t next_psn = 0; ///< of the packet that is sent next: behind `acknowledged_psn` again after a loss
    std::uint32_t sent_psn = 0; ///< behind the highest that was ever sent
    std::uint32_t packets_in_flight = 0;
    std::uint32_t window = 0; ///< packets that may be in flight
    rdma_awaits awaits = rdma_awaits::nothing;
    std::uint64_t ends_in_ns = 0; ///< the time that `awaits` says; 0: for ever, or at once
    std::uint8_t retries_left = 0;
    std::uint8_t rnr_retries_left = 0; ///< 7: without end

    // The send ring, in positions: committed >= begun >= completed.
    std::uint32_t committed = 0, begun = 0, completed = 0;
    std::uint32_t entries_in_flight = 0;
    std::vector<rdma_dump_entry> entries{}; ///< of these the oldest, most_entries at most

    // Requests of the peer.
    std::uint32_t expected_psn = 0;
    std::uint32_t msn = 0;                  ///< messages completed
    std::uint32_t answers_waiting = 0;      ///< that have not been sent
    std::uint32_t receives_posted = 0;      ///< and not taken
    std::vector<rdma_refused> refused_by{}; ///< since the queue pair was made; in sum rdma_counters::refused

    std::string last_error{};        ///< a sentence: which entry, request or receive, and why; empty: none
    std::uint64_t last_error_ns = 0; ///< UTC
};

/// Several lines of text, without one at the end.
std::string to_string(const rdma_dump& dump);

} // namespace weftio
