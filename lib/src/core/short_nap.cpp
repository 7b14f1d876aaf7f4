#include "core/short_nap.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

namespace weftio::detail {

namespace {

constexpr long whole_nap_ns = 100'000'000;
constexpr auto enough = std::chrono::milliseconds(10);
constexpr auto between_looks = std::chrono::milliseconds(1);

/// A real-time signal that does what it does by default, the last first: applications take them from the front.
int free_signal()
{
    for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal)
        if (struct sigaction now {}; sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
            return signal;
    return 0;
}

/// Whether `thread`, of this process, is in a sleep of 100 ms.
bool naps(pid_t thread)
{
    // "number argument argument ...", or "running"
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
    long call = -1;
    std::uintptr_t arguments[4]{};
    if (!(file >> call >> std::hex))
        return false;
    for (std::uintptr_t& argument : arguments) {
        std::string word;
        file >> word;
        argument = std::strtoull(word.c_str(), nullptr, 16);
    }
    // Copied by the kernel, as it may be gone by now.
    timespec wanted{};
    iovec to{&wanted, sizeof wanted}, from{reinterpret_cast<void*>(call == SYS_clock_nanosleep ? arguments[2] : arguments[0]), sizeof wanted};
    return (call == SYS_clock_nanosleep || call == SYS_nanosleep) &&
           process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(sizeof wanted) && wanted.tv_sec == 0 &&
           wanted.tv_nsec == whole_nap_ns;
}

} // namespace

short_nap::short_nap() : signal_(free_signal())
{
    if (signal_ == 0)
        return;
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART; // which sleeps do not heed: whatever else the signal should meet goes on
    sigaction(signal_, &action, &action_before_);
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, signal_);
    pthread_sigmask(SIG_UNBLOCK, &ours, &mask_before_);
    watcher_ = std::thread([this, sleeper = gettid()] { watch(sleeper); });
}

short_nap::~short_nap()
{
    if (signal_ == 0)
        return;
    ending_.store(true, std::memory_order_relaxed);
    watcher_.join(); // a signal that was sent has arrived when this returns
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    sigaction(signal_, &action_before_, nullptr);
}

void short_nap::watch(pid_t sleeper) const
{
    while (!ending_.load(std::memory_order_relaxed)) {
        if (naps(sleeper)) {
            std::this_thread::sleep_for(enough);
            if (naps(sleeper))
                syscall(SYS_tgkill, getpid(), sleeper, signal_);
            return;
        }
        std::this_thread::sleep_for(between_looks);
    }
}

} // namespace weftio::detail
