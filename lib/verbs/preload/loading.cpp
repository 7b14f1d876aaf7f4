#include "loading.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <atomic>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "host.hpp"
#include "paths.hpp"
#include "real.hpp"

namespace weftio::verbs::preload {

namespace {

/// A thread that takes the dynamic linker's lock once. The thread and its creator both set the state; the second one
/// frees this.
struct probe {
    enum state { waits, has_had_it, is_left } at = waits;
    int thread = 0; ///< thread number, once it runs
};

/// Number of threads left waiting for the lock, and the thread number of one of them.
constinit std::atomic<int> left{0}, one_left{0};
/// This thread was found to be loading a library.
constinit thread_local bool was_loading = false;

void take_lock() noexcept
{
    if (void* const program = dlopen(nullptr, RTLD_LAZY | RTLD_NOLOAD))
        dlclose(program);
}

void* run_probe(void* given) noexcept
{
    auto* const own = static_cast<probe*>(given);
    become_engines();
    __atomic_store_n(&own->thread, gettid(), __ATOMIC_RELEASE);
    take_lock();
    if (__atomic_exchange_n(&own->at, probe::has_had_it, __ATOMIC_ACQ_REL) == probe::is_left) {
        --left;
        std::free(own);
    }
    return nullptr;
}

/// nullptr: no memory, or no thread could be started.
probe* start_probe() noexcept
{
    auto* const made = static_cast<probe*>(std::malloc(sizeof(probe)));
    if (made == nullptr)
        return nullptr;
    *made = {};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // signals go to the program's threads
    pthread_t thread;
    const bool started = real().pthread_create(&thread, nullptr, run_probe, made) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started)
        pthread_detach(thread);
    else
        std::free(made);
    return started ? made : nullptr;
}

/// Whether a thread sleeps, according to Linux. A thread that has just been woken does not.
bool sleeps(int thread) noexcept
{
    number_text number;
    char path[64], text[64];
    join(path, sizeof path, "/proc/self/task/", digits(static_cast<unsigned>(thread), number), "/stat");
    const int file = thread == 0 ? -1 : real().open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        real().close(file);
    text[got > 0 ? got : 0] = 0;
    const char* const name_end = std::strrchr(text, ')');
    return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

/// Whether the thread keeps sleeping while this thread takes the lock repeatedly. Unlocking wakes a waiting thread, so
/// if the other thread still sleeps, this thread holds the lock anyway.
template <class HasComeIn>
bool stays_out(const int& thread, HasComeIn has_come_in) noexcept
{
    const int enough = was_loading ? 20 : 1500;
    int asleep = 0;
    for (int round = 0; round < 5000 && asleep < enough; ++round) {
        take_lock(); // waits while other threads load libraries
        if (has_come_in())
            return false;
        asleep = sleeps(__atomic_load_n(&thread, __ATOMIC_ACQUIRE)) ? asleep + 1 : 0;
        const timespec nap{.tv_sec = 0, .tv_nsec = round < 10 ? 100'000 : 1'000'000};
        nanosleep(&nap, nullptr);
    }
    return asleep >= enough;
}

} // namespace

bool is_loading() noexcept
{
    const engine_scope scope;
    if (left.load() != 0 && stays_out(one_left.load(), [] { return left.load() == 0; }))
        return true;
    probe* const other = start_probe();
    if (other == nullptr)
        return false;
    const auto has_had_it = [&] { return __atomic_load_n(&other->at, __ATOMIC_ACQUIRE) == probe::has_had_it; };
    const bool loading = stays_out(other->thread, has_had_it);
    was_loading = loading;
    ++left;
    one_left.store(__atomic_load_n(&other->thread, __ATOMIC_ACQUIRE));
    if (__atomic_exchange_n(&other->at, probe::is_left, __ATOMIC_ACQ_REL) == probe::waits)
        return loading;
    --left;
    std::free(other);
    return false;
}

void forget_probes() noexcept
{
    left.store(0);
}

} // namespace weftio::verbs::preload
