// Signals that a write raises in the thread that makes it.
#pragma once

#include <csignal>
#include <ctime>
#include <pthread.h>

namespace weftio::core {

/// While it lives, a write beyond the file size limit, or into a pipe without a reader, fails with EFBIG or EPIPE and
/// raises no signal in this thread: SIGXFSZ and SIGPIPE would end a process without handlers, and a handler of the
/// application is not for writes of the library. A signal that was pending before stays pending. Create and destroy it
/// on one thread.
class no_write_signals {
 public:
    no_write_signals() noexcept
    {
        sigset_t waiting;
        sigemptyset(&waiting);
        sigpending(&waiting);
        sigemptyset(&ours_);
        for (int signal : {SIGXFSZ, SIGPIPE})
            if (sigismember(&waiting, signal) == 0)
                sigaddset(&ours_, signal);
        pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    }
    no_write_signals(const no_write_signals&) = delete;
    no_write_signals& operator=(const no_write_signals&) = delete;
    ~no_write_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

    /// Discards the signal that a failed write has raised. Call it after that write.
    void take() const noexcept
    {
        const timespec at_once{};
        while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
        }
    }

 private:
    sigset_t ours_, before_;
};

} // namespace weftio::core
