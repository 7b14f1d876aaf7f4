// Packets that a kernel reads in memory of its device, which the engine cannot write: they are received beside it and
// copied there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/backend.hpp"
#include "weftio/device/queue/completion.h"

namespace weftio::nic {

/// Holds completions back until their packets have landed. Owned and driven by one engine.
///
/// A copy takes microseconds to start, however small. So while one is under way, what arrives is gathered for the next:
/// the busier the queue, the larger the copies.
class staging {
 public:
    /// For a ring of `depth` slots, a power of two: so many packets can be on their way.
    staging(const staging_target& target, const std::byte* slots, std::uint32_t stride_bytes, std::uint32_t depth)
        : target_(target), slots_(slots), stride_bytes_(stride_bytes), packets_(depth)
    {}

    /// A packet of `bytes` bytes is in `slot`; `publication` is to be stored at `where` when it has landed. @pre held()
    /// < depth
    void add(std::uint32_t* where, std::uint32_t publication, std::uint32_t slot, std::uint32_t bytes) noexcept
    {
        packet_at(end_++) = {where, publication, slot, bytes};
    }
    /// Packets that were published.
    struct landing {
        std::uint32_t packets = 0;
        std::uint64_t bytes = 0;
    };
    /// Publishes what has landed, and starts the next copy. Never blocks.
    landing turn();
    /// Packets that have not landed.
    std::uint32_t held() const noexcept { return end_ - first_; }

 private:
    static constexpr std::uint32_t most_under_way = 2; ///< so that one can start when another ends

    struct packet {
        std::uint32_t* where;
        std::uint32_t publication, slot, bytes;
    };
    packet& packet_at(std::uint32_t index) noexcept { return packets_[index & (packets_.size() - 1)]; }
    void start_copies();

    staging_target target_;
    const std::byte* slots_;
    std::uint32_t stride_bytes_;
    std::vector<packet>
        packets_; ///< by free-running index: first_ .. copied_ are being copied, copied_ .. end_ are not yet
    std::uint32_t first_ = 0, copied_ = 0, end_ = 0;
    std::array<std::uint32_t, most_under_way> end_of_batch_{}; ///< index behind each batch that is being copied
    std::uint32_t started_ = 0, landed_ = 0;                   ///< batches
};

} // namespace weftio::nic
