// Signals that a write raises in the thread that makes it.
#pragma once

#include <csignal>
#include <ctime>
#include <pthread.h>

namespace weftio::detail {

/// While it lives, a write beyond the process's limit of a file's size, or into a pipe that nobody reads any more, only
/// fails (EFBIG, EPIPE): their signals end a process that has no handler, and one that has is not meant. A signal that
/// waited before goes on waiting. On the stack of one thread.
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

    /// To be called behind a write that has failed: takes back what it has raised.
    void take() const noexcept
    {
        const timespec at_once{};
        while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
        }
    }

 private:
    sigset_t ours_, before_;
};

} // namespace weftio::detail
