#include "core/process.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "core/log.hpp"
#include "core/undying.hpp"

namespace weftio::core {

namespace {

void at_exit() noexcept;

struct process_state {
    process_state() { std::atexit(at_exit); }

    std::mutex mutex;
    std::vector<moving*> all_moving;               ///< guarded by mutex
    void (*release)() noexcept = []() noexcept {}; ///< likewise
    const maker made{};
    std::atomic<bool> exits{false}, still_moving{false};
    std::atomic<pthread_t> exiting{}; ///< the thread that runs exit()
    std::atomic<unsigned> undertakings{0};
};

thread_local unsigned own_undertakings = 0;

process_state& state()
{
    return undying<process_state>();
}

/// Waits up to a second for the undertakings of other threads. Returns whether none is left, this thread, which runs
/// exit(), included.
bool undertakings_end(const process_state& process) noexcept
{
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
         process.undertakings.load() != own_undertakings && std::chrono::steady_clock::now() < end;)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    return process.undertakings.load() == 0;
}

void at_exit() noexcept
{
    end_log();
    process_state& process = state();
    if (!process.made.may_end()) // a child of fork()
        return;
    process.exiting.store(pthread_self());
    process.exits.store(true);
    process.still_moving.store(!undertakings_end(process));
    std::unique_lock lock(process.mutex);
    for (moving* each : process.all_moving)
        if (!each->stand_still())
            process.still_moving.store(true);
    auto release = process.release;
    lock.unlock();
    if (!process.still_moving.load())
        release();
}

} // namespace

bool maker::may_end() const noexcept
{
    const process_state& process = state();
    return getpid() == process_ && !process.still_moving.load() &&
           (!process.exits.load() || pthread_equal(process.exiting.load(), pthread_self()) != 0);
}

undertaking::undertaking() noexcept
{
    state().undertakings.fetch_add(1);
    ++own_undertakings;
}

undertaking::~undertaking()
{
    --own_undertakings;
    state().undertakings.fetch_sub(1);
}

void moving::enter()
{
    process_state& process = state();
    std::scoped_lock lock(process.mutex);
    process.all_moving.push_back(this);
}

void moving::leave() noexcept
{
    process_state& process = state();
    std::scoped_lock lock(process.mutex);
    std::erase(process.all_moving, this);
}

bool process_exits() noexcept
{
    return state().exits.load();
}

void release_at_exit(void (*release)() noexcept)
{
    process_state& process = state();
    std::scoped_lock lock(process.mutex);
    process.release = release;
}

} // namespace weftio::core
