// A tenth of a second that EAL sleeps when it starts, made short.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <thread>

namespace weftio::detail {

/// While it lives, the calling thread's first sleep of 100 ms ends after 10 ms.
///
/// Where the processor does not say how fast its cycle counter runs (many Xeons, every AMD, most virtual machines), EAL measures it
/// over a sleep of exactly 100 ms and rounds to 10 MHz. It takes the time that really passed, so a shorter sleep does as well. Only
/// a sleep of that length is touched: a second thread looks what the first one is doing, and interrupts it with a real-time signal
/// that nobody uses, whose handler does nothing. Where that cannot be seen, or no signal is free, the sleep takes what it takes.
///
/// - Threads: made and destroyed by the thread that sleeps.
class short_nap {
 public:
    short_nap();
    short_nap(const short_nap&) = delete;
    short_nap& operator=(const short_nap&) = delete;
    ~short_nap();

 private:
    void watch(pid_t sleeper) const;

    int signal_ = 0; ///< 0: none is free
    struct sigaction action_before_ {};
    sigset_t mask_before_{};
    std::atomic<bool> ending_{false};
    std::thread watcher_;
};

} // namespace weftio::detail
