// The lanes of a block, as fibers of one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "devices/cpu/fiber.hpp"
#include "devices/cpu/lane_order.hpp"
#include "devices/cpu/stack_pool.hpp"
#include "weftio/device/platform.h"

namespace weftio::devices::cpu {

/// Runs the lanes of one block one after another, each until it waits, yields or ends.
///
/// Lanes meet at four kinds of places: a barrier or a sum, of their warp or of their block. A place opens when every
/// lane of the warp or block that has not ended has arrived. If no lane can continue, the block is deadlocked, which is
/// a fault.
///
/// - Threads: the block's own.
class block_scheduler final : public weftio_cpu_scheduler {
 public:
    /// @param first  weftio_cpu_this_lane of lane 0; other lanes differ in their number only
    /// @param ended_from_outside  once true, every lane ends at its next barrier, sum or yield
    block_scheduler(const weftio_cpu_lane& first, stack_pool& stacks, lane_order order,
                    const std::atomic<bool>& ended_from_outside);

    /// Runs `body` once in every lane and returns when all have ended. Never throws.
    /// @return empty, or the fault: what it was and in which lanes
    std::string run(const std::function<void()>& body) noexcept;

    void barrier(scope over) override;
    weftio_u32 sum(scope over, weftio_u32 value) override;
    void yield() override;

 private:
    struct meeting_point {
        const char* name; ///< for messages
        std::uint32_t arrived = 0;
        weftio_u32 total = 0;
    };
    /// The lanes of a warp or of the block.
    struct group {
        group(scope over, std::uint32_t first, std::uint32_t count);

        std::uint32_t first;
        std::uint32_t count;
        std::uint32_t live; ///< lanes that have not ended
        meeting_point barrier;
        meeting_point sum;
    };
    struct lane {
        std::optional<fiber> body{};
        const meeting_point* waits_at = nullptr;
        weftio_u32 result = 0; ///< of the last place that opened for this lane
        bool ended = false;
    };

    void run_rounds();
    bool run_round();
    void run_lane(std::uint32_t number);
    void end_lane(std::uint32_t number);
    void cancel_lanes();
    void lane_body() noexcept;
    template <class Text>
    void note_fault(Text&& text) noexcept;
    weftio_u32 meet(group& all, meeting_point& at, weftio_u32 value);
    void open_if_complete(group& all, meeting_point& at);
    void suspend();
    group& group_of(scope over, std::uint32_t lane);
    std::string deadlock_text() const;

    const weftio_cpu_lane first_;
    stack_pool& stacks_;
    lane_order order_;
    const std::atomic<bool>& ended_from_outside_;
    const std::function<void()>* kernel_ = nullptr;
    std::vector<lane> lanes_;
    std::vector<group> warps_;
    group block_;
    std::vector<std::uint32_t> sequence_; ///< every lane, in the order of this round
    std::uint32_t current_ = 0;
    bool canceling_ = false;
    std::string fault_;
};

/// Formats ascending numbers as "3, 5-9, 12"; a list that is too long ends in "...".
std::string lane_list(const std::vector<std::uint32_t>& lanes);

/// A text for an exception.
std::string describe(const std::exception_ptr& thrown);

} // namespace weftio::devices::cpu
