// What the RDMA benchmark measures, one function each. All of them are figures a second, but for round trips.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rdma/place.hpp"

namespace weftio::bench {

/// Writes of 8 bytes that travel in the entry, from the near ends of so many queue pairs.
double small_writes(const rdma_place& place, std::uint32_t queues, double seconds);
/// The same of one queue pair, beside `idle` more that are connected and have nothing to do.
double small_writes_beside(const rdma_place& place, std::uint32_t idle, double seconds);
/// Bytes of writes, or of reads, of so many bytes each.
double written_bytes(const rdma_place& place, std::size_t bytes, double seconds);
double read_bytes(const rdma_place& place, std::size_t bytes, double seconds);
/// Bytes that memcpy() copies on this core, from and to the same places.
double copied_bytes(const rdma_place& place, std::size_t bytes, double seconds);
/// Messages of so many bytes. The far kernel posts their receives again.
double sent_messages(const rdma_place& place, const rdma_cores& cores, std::uint32_t bytes, double seconds);
double fetched_and_added(const rdma_place& place, double seconds);
/// Frames as long as an RDMA packet with so much payload, from an eth_txq at the near port to an eth_rxq at the far one.
double frames(const rdma_place& place, const rdma_cores& cores, std::uint32_t payload_bytes, double seconds);

struct round_trips {
    double median_us = 0, p99_us = 0;
};
/// Of eight bytes and a number behind them, from kernel to kernel.
round_trips ping_pong(const rdma_place& place, const rdma_cores& cores, std::uint32_t trips);

/// Of a frame of 60 bytes, likewise. @pre two ports
round_trips frame_ping_pong(const rdma_place& place, const rdma_cores& cores, std::uint32_t trips);

/// Resident memory of a queue pair with rings of 64, without the rings themselves. Call it once, before there are others.
double bytes_of_a_queue_pair(const rdma_place& place, std::uint32_t count);

} // namespace weftio::bench
