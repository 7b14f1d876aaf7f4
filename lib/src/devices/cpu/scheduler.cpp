#include "devices/cpu/scheduler.hpp"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace weftio::devices::cpu {

namespace {

/// Unwinds a lane that must end before its kernel has.
struct lane_canceled {};

} // namespace

block_scheduler::group::group(scope over, std::uint32_t first_lane, std::uint32_t lanes)
    : first(first_lane), count(lanes),
      live(lanes), barrier{over == scope::block ? "the block barrier" : "their warp's barrier"},
      sum{over == scope::block ? "the block sum" : "their warp's sum"}
{}

block_scheduler::block_scheduler(const weftio_cpu_lane& first, stack_pool& stacks, lane_order order,
                                 const std::atomic<bool>& ended_from_outside)
    : first_(first), stacks_(stacks), order_(order), ended_from_outside_(ended_from_outside), lanes_(first.block_lanes),
      block_(scope::block, 0, first.block_lanes), sequence_(first.block_lanes)
{
    std::iota(sequence_.begin(), sequence_.end(), 0u);
    for (std::uint32_t lane = 0; lane < first.block_lanes; lane += WEFTIO_WARP_LANES)
        warps_.emplace_back(scope::warp, lane, std::min(WEFTIO_WARP_LANES, first.block_lanes - lane));
}

std::string block_scheduler::run(const std::function<void()>& body) noexcept
{
    kernel_ = &body;
    try {
        run_rounds();
    } catch (...) { // a lane got no stack
        note_fault(
            [&] { return fmt::format("lane {} could not start: {}", current_, describe(std::current_exception())); });
    }
    cancel_lanes();
    weftio_cpu_this_lane = {};
    return std::move(fault_);
}

template <class Text>
void block_scheduler::note_fault(Text&& text) noexcept
try {
    fault_ = text();
} catch (const std::bad_alloc&) {
    fault_ = "out of memory"; // short enough for std::string to allocate nothing
}

void block_scheduler::run_rounds()
{
    while (block_.live > 0 && fault_.empty() && !ended_from_outside_.load(std::memory_order_relaxed)) {
        if (!run_round())
            fault_ = deadlock_text();
    }
}

/// Runs each lane that does not wait once. Returns whether there was any.
bool block_scheduler::run_round()
{
    bool progress = false;

    order_.arrange(sequence_);
    for (std::uint32_t number : sequence_) {
        if (lanes_[number].ended || lanes_[number].waits_at)
            continue;
        progress = true;
        run_lane(number);
        if (!fault_.empty())
            break;
    }
    return progress;
}

void block_scheduler::run_lane(std::uint32_t number)
{
    lane& runs = lanes_[number];

    current_ = number;
    if (!runs.body)
        runs.body.emplace(stacks_, [this] { lane_body(); });
    weftio_cpu_this_lane = first_;
    weftio_cpu_this_lane.lane = number;
    weftio_cpu_this_lane.scheduler = this;
    if (!runs.body->resume())
        end_lane(number);
}

void block_scheduler::end_lane(std::uint32_t number)
{
    lanes_[number].body.reset();
    lanes_[number].ended = true;
    for (group* all : {&group_of(scope::warp, number), &block_}) {
        --all->live;
        open_if_complete(*all, all->barrier);
        open_if_complete(*all, all->sum);
    }
}

/// Ends the remaining lanes: started ones are unwound, the others never run.
void block_scheduler::cancel_lanes()
{
    canceling_ = true;
    for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
        while (lanes_[number].body)
            run_lane(number);
    }
}

void block_scheduler::lane_body() noexcept
{
    try {
        (*kernel_)();
    } catch (const lane_canceled&) {
    } catch (...) {
        if (fault_.empty())
            note_fault([&] { return fmt::format("lane {} threw {}", current_, describe(std::current_exception())); });
    }
}

void block_scheduler::barrier(scope over)
{
    group& all = group_of(over, current_);
    meet(all, all.barrier, 0);
}

weftio_u32 block_scheduler::sum(scope over, weftio_u32 value)
{
    group& all = group_of(over, current_);
    return meet(all, all.sum, value);
}

void block_scheduler::yield()
{
    suspend();
}

weftio_u32 block_scheduler::meet(group& all, meeting_point& at, weftio_u32 value)
{
    lane& me = lanes_[current_];

    me.waits_at = &at;
    at.total += value;
    ++at.arrived;
    open_if_complete(all, at);
    suspend(); // also if the place has just opened, so that the last lane to arrive is not always the first to continue
    return me.result;
}

void block_scheduler::open_if_complete(group& all, meeting_point& at)
{
    if (at.arrived == 0 || at.arrived < all.live)
        return;
    for (std::uint32_t number = all.first; number < all.first + all.count; ++number) {
        if (lanes_[number].waits_at == &at) {
            lanes_[number].waits_at = nullptr;
            lanes_[number].result = at.total;
        }
    }
    at.arrived = 0;
    at.total = 0;
}

/// Suspends the running lane. run_lane() resumes it once it waits for nothing, or to unwind it.
void block_scheduler::suspend()
{
    lanes_[current_].body->suspend();
    if (canceling_)
        throw lane_canceled{};
}

block_scheduler::group& block_scheduler::group_of(scope over, std::uint32_t lane)
{
    return over == scope::block ? block_ : warps_[lane / WEFTIO_WARP_LANES];
}

std::string block_scheduler::deadlock_text() const
{
    std::vector<std::pair<std::string_view, std::vector<std::uint32_t>>> waiting;
    std::vector<std::uint32_t> ended;

    for (std::uint32_t number = 0; number < lanes_.size(); ++number) {
        if (lanes_[number].ended) {
            ended.push_back(number);
            continue;
        }
        std::string_view name = lanes_[number].waits_at->name;
        auto found = std::ranges::find(waiting, name, [](const auto& entry) { return entry.first; });
        if (found == waiting.end())
            found = waiting.insert(found, {name, {}});
        found->second.push_back(number);
    }
    std::string text = "deadlock:";
    for (const auto& [name, lanes] : waiting)
        text += fmt::format("{} {} at {} ({})", text.back() == ':' ? "" : ",",
                            lanes.size() == 1 ? "lane waits" : "lanes wait", name, lane_list(lanes));
    if (!ended.empty())
        text += fmt::format(", returned: {}", lane_list(ended));
    return text + "; all running lanes of a warp or block must reach the same barrier or sum";
}

std::string lane_list(const std::vector<std::uint32_t>& lanes)
{
    constexpr int most_runs = 8;
    std::string text;
    int runs = 0;

    for (std::size_t at = 0; at < lanes.size(); ++at) {
        std::size_t last = at;
        while (last + 1 < lanes.size() && lanes[last + 1] == lanes[last] + 1)
            ++last;
        if (runs++ == most_runs)
            return text + ", ...";
        text += fmt::format("{}{}", text.empty() ? "" : ", ", lanes[at]);
        if (last > at)
            text += fmt::format("-{}", lanes[last]);
        at = last;
    }
    return text;
}

std::string describe(const std::exception_ptr& thrown)
{
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& failure) {
        return fmt::format("the exception \"{}\"", failure.what());
    } catch (...) {
        return "an exception of unknown type";
    }
}

} // namespace weftio::devices::cpu
