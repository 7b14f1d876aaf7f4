// The order in which the lanes of a block run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace weftio::devices::cpu {

/// The seed for shuffling: none unless built with WEFTIO_SHUFFLE_LANES; then the number in WEFTIO_SHUFFLE_SEED, or a
/// random one.
/// @throws weftio::error errc::invalid_argument WEFTIO_SHUFFLE_SEED is not a number
std::optional<std::uint64_t> shuffle_seed();

/// Round-robin without a seed; with one, a new order every round, the same for the same seed and block.
///
/// - Threads: one at a time.
class lane_order {
 public:
    lane_order(std::optional<std::uint64_t> seed, std::uint32_t block) noexcept;

    /// Arranges `lanes` for the next round.
    void arrange(std::span<std::uint32_t> lanes) noexcept;

 private:
    std::uint64_t next() noexcept;

    std::uint64_t state_ = 0; ///< of xorshift64, which never reaches 0; 0: round-robin
};

} // namespace weftio::devices::cpu
