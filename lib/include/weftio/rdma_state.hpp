// Service and states of a queue pair, by the names of verbs.
#pragma once

#include <cstdint>

namespace weftio {

enum class rdma_service : std::uint8_t {
    reliable,   ///< RC: an entry is done when the peer has acknowledged it; lost packets are retransmitted
    unreliable, ///< UC: an entry is done when it is sent; a message that loses a packet is lost; no reads, no atomics
    /// UD, of a queue_pair only: no connection. Each entry names its peer; a message is one packet, which may be lost.
    datagram
};
const char* to_string(rdma_service service) noexcept; ///< "RC", "UC", "UD"

enum class rdma_state : std::uint8_t {
    reset,              ///< RESET: the NIC accesses none of its memory
    init,               ///< INIT: receives may be posted; nothing is executed
    ready_to_receive,   ///< RTR: requests of the peer are executed
    ready_to_send,      ///< RTS: entries are executed, too
    send_queue_drained, ///< SQD: entries in flight are executed to their end, and no new entry is begun
    send_queue_error,   ///< SQE (UC, UD): an entry has failed, later entries are flushed; messages still arrive
    error               ///< ERR: entries and receives are flushed
};
const char* to_string(rdma_state state) noexcept; ///< "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"

/// What shared_receives are at one moment.
struct shared_receives_standing {
    std::uint32_t waiting = 0;        ///< entries that are posted and that no queue pair has taken
    std::uint32_t limit = 0;          ///< see shared_receives::set_limit(); 0: none
    std::uint64_t limits_reached = 0; ///< how often fewer entries than the limit were waiting
    /// The record has posted more entries than the ring holds, or a link leads out of the ring. Queue pairs that take
    /// an entry fail.
    bool broken = false;
};

} // namespace weftio
