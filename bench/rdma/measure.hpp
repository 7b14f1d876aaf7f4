// The measurements of the RDMA benchmark, one function each. All but round trips return a rate per second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rdma/setup.hpp"

namespace weftio::bench {

/// By which key requests name the memory of the peer.
enum class named_by { region, window };

/// Inline WRITEs of 8 bytes, from the near ends of `queues` queue pairs.
double small_writes(const rdma_setup& setup, std::uint32_t queues, double seconds);
/// Inline WRITEs of 8 bytes of one queue pair, beside `idle` other pairs that are connected and idle.
double small_writes_beside(const rdma_setup& setup, std::uint32_t idle, double seconds);
/// Inline WRITEs of 8 bytes of one queue pair through a window of the peer.
double small_writes_through_window(const rdma_setup& setup, double seconds);
/// Bytes moved by WRITEs, or by READs, of `bytes` bytes each.
double written_bytes(const rdma_setup& setup, std::size_t bytes, double seconds, named_by key = named_by::region);
double read_bytes(const rdma_setup& setup, std::size_t bytes, double seconds);
/// Bytes that memcpy() copies on this core, from and to the same memory.
double copied_bytes(const rdma_setup& setup, std::size_t bytes, double seconds);
/// SENDs of `bytes` bytes. The peer's kernel posts their receives again.
double sent_messages(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t bytes, double seconds);
double fetched_and_added(const rdma_setup& setup, double seconds);
/// Ethernet frames with the length of an RDMA packet of `payload_bytes` bytes of payload, from an eth_txq at the near
/// port to an eth_rxq at the peer's port.
double frames(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t payload_bytes, double seconds);

struct round_trips {
    double median_us = 0, p99_us = 0;
};
/// Round trips of 8 bytes and a signal after them, from kernel to kernel.
round_trips ping_pong(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t trips);

/// Round trips of a frame of 60 bytes, from kernel to kernel. @pre two ports
round_trips frame_ping_pong(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t trips);

/// Binds of 1 MiB, each with its invalidation behind it, of one queue: pairs. @param beside_writes  a queue pair of the
/// same engine writes all the time
double bound_and_invalidated(const rdma_setup& setup, bool beside_writes, double seconds);
/// Regions of 1 MiB, each registered and destroyed. @param beside_writes  as above
double registered_and_destroyed(const rdma_setup& setup, bool beside_writes, double seconds);

/// Resident memory of a queue pair with rings of 64 entries, without the rings. Call it once, before there are other
/// queue pairs.
double bytes_of_a_queue_pair(const rdma_setup& setup, std::uint32_t count);

/// Exchanges per second: in each, `count` queue pairs write 64 bytes each and a number behind them, and all are waited
/// for before the next begins, as collective operations do. One port, whose engine the calling thread runs.
double exchanges(const rdma_setup& setup, unsigned count, double seconds);

} // namespace weftio::bench
