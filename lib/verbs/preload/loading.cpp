#include "loading.hpp"

#include <csignal>
#include <cstdlib>
#include <ctime>

#include <atomic>
#include <dlfcn.h>
#include <pthread.h>

#include "host.hpp"
#include "real.hpp"

namespace weftio::verbs::preload {

namespace {

/// A thread that takes the dynamic linker's lock once. It, or who started it, frees this: whoever is the second to set
/// the state.
struct probe {
    enum state { waits, has_had_it, is_left } at = waits;
};

/// Threads that were left waiting for the lock.
constinit std::atomic<int> left{0};

void take_lock() noexcept
{
    if (void* const program = dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD))
        dlclose(program);
}

void nap(long nanoseconds) noexcept
{
    const timespec time{.tv_sec = 0, .tv_nsec = nanoseconds};
    nanosleep(&time, nullptr);
}

void* run_probe(void* given) noexcept
{
    auto* const own = static_cast<probe*>(given);
    become_engines();
    take_lock();
    if (__atomic_exchange_n(&own->at, probe::has_had_it, __ATOMIC_ACQ_REL) == probe::is_left) {
        --left;
        std::free(own);
    }
    return nullptr;
}

/// nullptr when there is no memory, or no thread.
probe* start_probe() noexcept
{
    auto* const made = static_cast<probe*>(std::malloc(sizeof(probe)));
    if (made == nullptr)
        return nullptr;
    *made = {};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the program's threads
    pthread_t thread;
    const bool started = real().pthread_create(&thread, nullptr, run_probe, made) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started)
        pthread_detach(thread);
    else
        std::free(made);
    return started ? made : nullptr;
}

/// Whether the probe still waits, after this thread has had the lock many times.
bool stays_out(const probe& other) noexcept
{
    for (int round = 0; round < 200; ++round) {
        take_lock(); // waits for other threads that load libraries
        nap(round < 20 ? 100'000 : 10'000'000);
        if (__atomic_load_n(&other.at, __ATOMIC_ACQUIRE) == probe::has_had_it)
            return false;
    }
    return true;
}

/// Whether threads that an earlier call has left still wait.
bool others_stay_out() noexcept
{
    for (int round = 0; round < 3; ++round) {
        take_lock();
        if (left.load() == 0)
            return false;
        nap(10'000'000);
    }
    return left.load() != 0;
}

} // namespace

bool is_loading() noexcept
{
    const engine_scope scope;
    if (others_stay_out())
        return true;
    probe* const other = start_probe();
    if (other == nullptr)
        return false;
    if (stays_out(*other)) {
        ++left;
        if (__atomic_exchange_n(&other->at, probe::is_left, __ATOMIC_ACQ_REL) == probe::waits)
            return true;
        --left;
    }
    std::free(other);
    return false;
}

} // namespace weftio::verbs::preload
