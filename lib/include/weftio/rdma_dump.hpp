// A snapshot of a queue pair: what it waits for and what it has done last. Use it to find out why a queue pair hangs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weftio/counters.hpp"
#include "weftio/rdma_state.hpp"
#include "weftio/refusal.hpp"

namespace weftio {

/// What a requester waits for before it can continue.
enum class rdma_awaits : std::uint8_t {
    nothing,
    answer,  ///< an acknowledgment or READ data; it retries in `ends_in_ns` (0 if timeout is 0: never)
    receiver ///< the peer had no receive posted (RNR NAK); it retries in `ends_in_ns`
};
const char* to_string(rdma_awaits what) noexcept;

/// An entry that the NIC has begun and that is not done.
struct rdma_dump_entry {
    std::uint32_t position = 0; ///< free-running index
    std::uint8_t opcode = 0;    ///< WEFTIO_OPCODE_* of the entry
    std::uint32_t bytes = 0;
    std::uint32_t first_psn = 0;
    std::uint32_t packets = 0; ///< number of PSNs that the entry takes; 0 for a NOP
};

/// Requests that were refused for one reason.
struct rdma_refused {
    refusal reason = refusal::none;
    std::uint64_t count = 0;
};

/// A snapshot between two iterations of the engine. Values of a side that does not exist yet are 0.
struct rdma_dump {
    static constexpr std::size_t most_entries = 8;

    std::uint32_t number = 0;
    unsigned engine = 0; ///< engine of the port that executes it
    rdma_state state = rdma_state::init;
    std::uint64_t turns = 0; ///< engine iterations that worked on the queue pair; nearly constant while it waits

    // The connection; empty before RTR.
    bool connected = false;
    rdma_service service = rdma_service::reliable; ///< set before RTR, too
    bool same_port = false;                        ///< the peer is at this port: no packet goes to the driver
    std::string address, peer_address;
    std::array<std::uint8_t, 6> peer_mac{};
    std::uint32_t peer_queue = 0;
    std::uint32_t path_mtu = 0;
    std::uint8_t dscp = 0;
    std::uint8_t hop_limit = 0;

    // Requests of this end: acknowledged <= next <= sent, modulo 2^24.
    std::uint32_t acknowledged_psn = 0; ///< all requests before this PSN have been acknowledged
    std::uint32_t next_psn = 0; ///< PSN of the next packet to send; after a loss it goes back to `acknowledged_psn`
    std::uint32_t sent_psn = 0; ///< highest PSN ever sent, plus one
    std::uint32_t packets_in_flight = 0;
    std::uint32_t window = 0; ///< packets that may be in flight
    rdma_awaits awaits = rdma_awaits::nothing;
    std::uint64_t ends_in_ns = 0; ///< time until the retry of `awaits`; 0: never, or at once
    std::uint8_t retries_left = 0;
    std::uint8_t rnr_retries_left = 0; ///< 7: no limit

    // The send ring, in positions: committed >= begun >= completed.
    std::uint32_t committed = 0, begun = 0, completed = 0;
    std::uint32_t entries_in_flight = 0;
    std::vector<rdma_dump_entry> entries{}; ///< the oldest entries in flight, most_entries at most

    // Requests of the peer.
    std::uint32_t expected_psn = 0;
    std::uint32_t msn = 0;                  ///< messages completed
    std::uint32_t answers_waiting = 0;      ///< acknowledgments and READ responses that have not been sent
    std::uint32_t receives_posted = 0;      ///< receives that are posted and that no message has taken
    std::vector<rdma_refused> refused_by{}; ///< since construction; the sum is rdma_counters::refused
    rdma_counters counters{};

    std::string last_error{};        ///< one sentence: the entry, request or receive, and the reason; empty: none
    std::uint64_t last_error_ns = 0; ///< UTC
};

/// The snapshot as several lines of text, without a newline at the end.
std::string to_string(const rdma_dump& dump);

} // namespace weftio
