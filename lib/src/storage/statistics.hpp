// Counts of an engine, kept where other processes can read them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/telemetry.hpp"
#include "storage/place.hpp"
#include "storage/statistics_page.hpp"
#include "storage/way.hpp"
#include "weftio/file_result.hpp"

namespace weftio::storage {

using live_statistics = basic_statistics_page<std::atomic<std::uint64_t>>;

/// What is known of an operation besides its result, for the levels above 0.
struct measured {
    std::uint64_t begin_ns = 0; ///< of tally::now(); 0: no latency is counted
    std::size_t bytes = 0;      ///< asked for
    int gpu = -1;               ///< whose memory; -1: none's
};

/// What operations of one engine count; exact, from any thread. Level 0 counts operations, errors, bytes and falls;
/// level 1 latencies too; level 2 sizes too; level 3 each GPU too.
class tally {
 public:
    explicit tally(unsigned level = 0);
    tally(const tally&) = delete;
    tally& operator=(const tally&) = delete;
    ~tally();

    /// The time for `measured`, CLOCK_MONOTONIC; 0 at level 0.
    std::uint64_t now() const noexcept;
    /// What to measure of an operation that begins now.
    measured begin(std::size_t bytes, const place& memory) const noexcept;
    /// The same; `owner` is the device whose memory it is.
    measured begin(std::size_t bytes, const devices::device_backend* owner) const noexcept;
    void add(io::kind what, const file_result& result, const measured& how = {}) noexcept;
    file_counters read() const noexcept;
    unsigned level() const noexcept { return level_; }
    live_statistics::of_rings& rings() noexcept { return page_->rings; }
    live_statistics::of_program& registered() noexcept { return page_->registered; }
    const live_statistics& page() const noexcept { return *page_; }

 private:
    void share();
    void add_rows();

    const unsigned level_;
    std::unique_ptr<live_statistics> own_; ///< without a memfd
    live_statistics* page_ = nullptr;
    int descriptor_ = -1;
    std::vector<std::unique_ptr<core::telemetry_row>> rows_;
};

/// N of "cuda:N"; -1: another device.
int gpu_of(const devices::device_backend* owner) noexcept;
int gpu_of(const place& memory) noexcept;

} // namespace weftio::storage
