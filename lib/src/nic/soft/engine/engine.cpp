#include "nic/soft/engine/engine.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <system_error>

#include "core/cancellation.hpp"
#include "core/clock.hpp"
#include "core/guarded.hpp"
#include "core/process.hpp"
#include "weftio/device/platform.h"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

namespace {

/// A sleep may take this much longer than requested: the engine stays awake while a deadline is closer than this.
constexpr std::uint64_t wake_up_ns = 200'000;
/// Entries that a thread executes for one queue in one turn. It equals the receive burst, so that a kernel that
/// forwards packets keeps pace. In inline mode a push executes all its entries.
constexpr std::uint32_t entries_per_turn = 64;
/// While there are packets to move, an engine makes no change for this many times the duration of the last change, at
/// most for 1 ms.
constexpr std::uint64_t turns_to_changes = 255;
/// Turns between two checks whether the clock must be disciplined, and whether our fault handler is still the installed
/// one. This many turns take microseconds, or 1 ms when the engine sleeps between turns.
constexpr std::uint32_t turns_between_polls = 64;

/// Whose turn this thread runs, or has run last; of ports with several engines.
thread_local const engine* running = nullptr;

/// Registers the calling thread with DPDK until the thread ends, because mempool caches and lock-free driver paths
/// identify a thread by its lcore. When registration fails, DPDK works without them, only slower. A thread that DPDK
/// knows already stays as it is.
void be_known_to_dpdk()
{
    thread_local struct known {
        const core::maker maker{};
        const bool by_us = rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0;
        known() = default;
        known(const known&) = delete;
        known& operator=(const known&) = delete;
        ~known()
        {
            if (by_us && maker.may_end())
                rte_thread_unregister();
        }
    } known;
    static_cast<void>(known);
}

} // namespace

engine::engine(std::vector<unit*> units, const port_options& options, std::string name)
    : units_(std::move(units)), name_(std::move(name)), idle_(options.idle),
      has_thread_(options.mode == engine_mode::thread)
{
    if (!has_thread_)
        return;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& refusal) {
        throw error(errc::device_error,
                    fmt::format("weftio: engine {}: cannot start its thread ({}); raise the limit (ulimit -u, the pids "
                                "limit of the container, or ulimit -v for its stack), or set .mode = "
                                "engine_mode::inline_worker, which needs no thread",
                                name_, refusal.what()));
    }
    pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
    try {
        if (options.core >= 0)
            pin(options.core);
        if (options.realtime != 0)
            make_realtime(options.realtime);
    } catch (...) {
        end(); // the destructor does not run when the constructor throws
        throw;
    }
}

engine::~engine()
{
    end();
}

void engine::end() noexcept
{
    const core::not_cancelled until_it_has_ended;
    ending_.store(true, std::memory_order_relaxed);
    if (thread_.joinable())
        thread_.join();
}

bool engine::stop_turns() noexcept
{
    ending_.store(true, std::memory_order_relaxed);
    if (thread_.get_id() == std::this_thread::get_id())
        return false;
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1); !turns_.try_lock();) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    turns_.unlock();
    if (thread_.joinable()) // the thread runs no more turns, so join() returns soon
        thread_.join();
    return true;
}

/// The caller's own engine is at the caller. A turn that holds `turns_` since before the round is waited for; one that
/// begins later sees what was changed.
bool engine::has_passed(std::uint64_t round) noexcept
{
    if (running == this || round_.load(std::memory_order_acquire) >= round)
        return true;
    const bool rests = turns_.try_lock();
    if (rests)
        turns_.unlock();
    return rests;
}

void engine::pin(int core) const
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(core), &set);
    if (int result = pthread_setaffinity_np(const_cast<std::thread&>(thread_).native_handle(), sizeof set, &set))
        throw error(
            result == EINVAL ? errc::invalid_argument : errc::device_error,
            fmt::format("weftio: engine {}: cannot run on core {} ({}): the core does not exist, is offline, or this "
                        "process may not use it; name one that \"lscpu -e\" lists as online, or -1 for any",
                        name_, core, std::strerror(result)));
}

void engine::make_realtime(int priority)
{
    sched_param wanted{};
    wanted.sched_priority = priority;
    int result = pthread_setschedparam(thread_.native_handle(), SCHED_FIFO, &wanted);
    if (result == 0)
        return;
    if (result == EPERM)
        throw error(errc::permission_denied,
                    fmt::format("weftio: engine: real-time priority {} requires CAP_SYS_NICE; run as root, or give the "
                                "program the rights with \"setcap cap_net_raw,cap_net_admin,cap_sys_nice+ep PROGRAM\"",
                                priority));
    throw error(errc::invalid_argument,
                fmt::format("weftio: engine: real-time priority {}: {}; set {} to {}", priority, std::strerror(result),
                            sched_get_priority_min(SCHED_FIFO), sched_get_priority_max(SCHED_FIFO)));
}

/// Who holds `turns_` makes a change or runs a turn, which take less time than a sleep and a wake-up.
std::unique_lock<std::mutex> engine::lock_turns()
{
    constexpr unsigned polls_before_sleep = 512;
    std::unique_lock lock(turns_, std::try_to_lock);
    for (unsigned polls = 0; !lock && polls != polls_before_sleep; ++polls) {
        rte_pause();
        lock.try_lock();
    }
    if (!lock)
        lock.lock();
    return lock;
}

unsigned engine::turn()
{
    be_known_to_dpdk();
    const std::unique_lock lock = lock_turns();
    make_wanted_change();
    return turns_stopped() ? 0 : one_turn(sides::both);
}

unsigned engine::last_turn()
{
    be_known_to_dpdk();
    std::scoped_lock lock(turns_);
    make_wanted_change();
    return one_turn(sides::both);
}

unsigned engine::send_turn_behind(const std::function<void()>& before)
{
    be_known_to_dpdk();
    const std::unique_lock lock = lock_turns();
    make_wanted_change();
    if (turns_stopped())
        return 0;
    before();
    return one_turn(sides::send);
}

/// Receive step 1, send step 2 and RDMA step 2 (docs/architecture.md): gives each unit its turn, in the order link,
/// receiver, rdma, sender, completions.
unsigned engine::one_turn(sides which)
{
    if (rounds_ != nullptr) {
        running = this;
        // Release: the accesses of the turns before are over.
        round_.store(rounds_->begun(), std::memory_order_release);
    }
    const std::uint32_t turns = turns_run_.load(std::memory_order_relaxed);
    if (turns % turns_between_polls == 0) {
        core::utc_clock::instance().discipline();
        core::keep_guarding();
    }
    const std::uint32_t most = has_thread_ ? entries_per_turn : std::numeric_limits<std::uint32_t>::max();
    unsigned moved = 0;
    for (unit* each : units_)
        if (which == sides::both || each->sends())
            moved += each->turn({.entries = most, .busy = (moved_ | moved) != 0, .moved_before = moved_});
    moved_ = moved;
    turns_run_.store(turns + 1, std::memory_order_relaxed);
    return moved;
}

void engine::run()
{
    be_known_to_dpdk();
    prctl(PR_SET_TIMERSLACK, 1000UL);
    std::scoped_lock lock(turns_);
    for (unit* each : units_)
        each->attend();
    for (unsigned empty = 0; !ending_.load(std::memory_order_relaxed);) {
        make_wanted_change();
        if (one_turn(sides::both) == 0) {
            idle(++empty);
            continue;
        }
        empty = 0;
        slept_ = {};
    }
    for (unit* each : units_)
        each->leave();
}

void engine::carry_out(const std::function<void()>& make, pace pace)
{
    constexpr unsigned polls_before_own = 64;
    const core::not_cancelled until_it_is_made;
    at_once_.fetch_add(pace == pace::at_once, std::memory_order_relaxed);
    std::scoped_lock one_at_a_time(changers_);
    wanted_change change{make};
    wanted_.store(&change, std::memory_order_release);
    // Acquire, pairs with the release in make_wanted_change(): this thread sees what the change did.
    std::uint32_t turns = turns_run_.load(std::memory_order_relaxed);
    for (unsigned polls = 1; wanted_.load(std::memory_order_acquire); ++polls) {
        weftio_relax(polls);
        if (polls % polls_before_own != 0)
            continue;
        // A worker between two of its turns must not find `turns_` locked: while turns go on, the next turn makes the
        // change.
        const std::uint32_t before = std::exchange(turns, turns_run_.load(std::memory_order_relaxed));
        if (turns == before && turns_.try_lock()) {
            moved_ = 0; // no turn has run since the last check, so the change slows nothing
            make_wanted_change();
            turns_.unlock();
        }
    }
    at_once_.fetch_sub(pace == pace::at_once, std::memory_order_relaxed);
    if (change.failure)
        std::rethrow_exception(change.failure);
}

/// Makes the waiting change, if there is one and its time has come. @pre the calling thread holds `turns_`
void engine::make_wanted_change() noexcept
{
    wanted_change* change = wanted_.load(std::memory_order_acquire);
    if (!change)
        return;
    const std::uint64_t begin = rte_rdtsc();
    if (moved_ != 0 && begin < next_change_ && at_once_.load(std::memory_order_relaxed) == 0)
        return;
    for (unit* each : units_)
        each->before_change();
    try {
        change->make();
    } catch (...) {
        change->failure = std::current_exception();
    }
    const std::uint64_t end = rte_rdtsc();
    next_change_ = end + std::min((end - begin) * turns_to_changes, rte_get_tsc_hz() / 1000);
    wanted_.store(nullptr, std::memory_order_release);
}

void engine::idle(unsigned empty_turns)
{
    constexpr unsigned turns_spinning = 256, turns_awake = 2048;
    const bool crowded = idle_ == idle_policy::adaptive && crowd_.is_there(empty_turns);
    if (idle_ == idle_policy::busy || (empty_turns < turns_spinning && !crowded) || deadline_is_near()) {
        rte_pause();
    } else if (idle_ == idle_policy::yield || (empty_turns < turns_awake && !crowded)) {
        std::this_thread::yield();
    } else {
        const std::chrono::nanoseconds nap = next_nap();
        sleeps_.store(1, std::memory_order_release);
        if (std::ranges::none_of(units_, [&](unit* each) { return each->rest(nap); }))
            std::this_thread::sleep_for(nap);
        sleeps_.exchange(0, std::memory_order_acq_rel); // pairs with sleeps()
        crowd_.slept();
    }
}

/// A hundredth of the time that the engine has slept since it had work, 20 to 100 us: what comes then is hardly later,
/// and an idle engine leaves its core to others.
std::chrono::nanoseconds engine::next_nap()
{
    constexpr std::chrono::nanoseconds shortest = std::chrono::microseconds(20),
                                       longest = std::chrono::microseconds(100);
    const std::chrono::nanoseconds nap = std::clamp(slept_ / 100, shortest, longest);
    slept_ += nap;
    return nap;
}

bool engine::deadline_is_near() const
{
    return std::any_of(units_.begin(), units_.end(), [](const unit* each) {
        const std::uint64_t deadline_ns = each->deadline_ns();
        return deadline_ns != 0 && deadline_ns < core::utc_now_ns() + wake_up_ns;
    });
}

} // namespace weftio::nic::soft
