// Packets that a kernel reads in memory of its device, which the engine cannot write: they are received beside it and copied there.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "weftio/device/ring.h"

namespace weftio::nic {

/// Where packets go from their slots. Slot k there is slot k here.
struct staging_target {
    std::shared_ptr<detail::copy_queue> copies; ///< empty: nowhere, kernels read the slots themselves
    std::byte* slots = nullptr;                 ///< address for the device
};

/// Holds completions back until their packets have landed. Owned and driven by one engine.
///
/// A copy takes microseconds to start, however small. So while one is under way, what arrives is gathered for the next: the busier
/// the queue, the larger the copies.
class staging {
 public:
    staging(const staging_target& target, const std::byte* slots, std::uint32_t stride_bytes)
        : target_(target), slots_(slots), stride_bytes_(stride_bytes)
    {
    }

    /// A packet of `bytes` bytes is in `slot`; `publication` is to be stored at `where` when it has landed.
    void add(std::uint32_t* where, std::uint32_t publication, std::uint32_t slot, std::uint32_t bytes)
    {
        waiting_.push_back({where, publication, slot, bytes});
    }
    /// Publishes what has landed, and starts the next copy. Never blocks. Returns how many were published.
    unsigned turn();
    /// Packets that have not landed.
    std::size_t held() const noexcept { return waiting_.size(); }

 private:
    static constexpr std::size_t most_under_way = 2; ///< so that one can start when another ends

    struct packet {
        std::uint32_t* where;
        std::uint32_t publication, slot, bytes;
    };
    void start_copies();

    staging_target target_;
    const std::byte* slots_;
    std::uint32_t stride_bytes_;
    std::deque<packet> waiting_;        ///< oldest first: those being copied, then those that are not yet
    std::deque<std::size_t> under_way_; ///< packets of each batch being copied
    std::size_t copying_ = 0;           ///< their sum
    std::uint32_t started_ = 0, landed_ = 0; ///< batches
};

} // namespace weftio::nic
