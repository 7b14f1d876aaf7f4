// Staging of packets for device memory that the engine cannot write: a packet is received in host memory, and a copy
// engine copies it to the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/receive/rx_ring.hpp"
#include "weftio/device/queue/completion.h"

namespace weftio::nic::soft {

/// Receive step 5 for device memory: withholds completions until their packets have been copied. One engine owns and
/// drives it.
///
/// Starting a copy takes microseconds, however short it is. Packets that arrive while copies are in flight are
/// therefore collected for the next batch: the busier the queue, the larger the copies.
class staging {
 public:
    /// Has capacity for all slots of the ring at once.
    explicit staging(const rx_ring& ring)
        : target_(ring.staged), slots_(ring.slots), stride_bytes_(ring.stride_bytes), zeroed_bytes_(ring.zeroed_bytes),
          packets_(ring.depth)
    {}

    /// Adds the packet of `bytes` bytes in `slot`. When it has been copied, turn() stores `publication` to `where`.
    /// @pre held() < depth
    void add(std::uint32_t* where, std::uint32_t publication, std::uint32_t slot, std::uint32_t bytes) noexcept
    {
        packet_at(end_++) = {where, publication, slot, bytes};
    }
    /// What one turn has published.
    struct delivery {
        std::uint32_t packets = 0;
        std::uint64_t bytes = 0;
    };
    /// Publishes the completions of packets that have been copied, and starts the next batch. Never blocks.
    delivery turn();
    /// The number of packets that have not been copied completely.
    std::uint32_t held() const noexcept { return end_ - first_; }

 private:
    static constexpr std::uint32_t most_under_way = 2; ///< two, so that one batch can start when another ends

    struct packet {
        std::uint32_t* where;
        std::uint32_t publication, slot, bytes;
    };
    packet& packet_at(std::uint32_t index) noexcept { return packets_[index & (packets_.size() - 1)]; }
    void start_copies();

    staging_target target_;
    const std::byte* slots_;
    std::uint32_t stride_bytes_, zeroed_bytes_;
    std::vector<packet>
        packets_; ///< by free-running index: packets first_ .. copied_ - 1 are being copied, copied_ .. end_ - 1 wait
    std::uint32_t first_ = 0, copied_ = 0, end_ = 0;
    std::array<std::uint32_t, most_under_way> end_of_batch_{}; ///< index after the last packet of each batch in flight
    std::uint32_t started_ = 0, completed_ = 0;                ///< number of batches, free-running
};

} // namespace weftio::nic::soft
