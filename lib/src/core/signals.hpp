// Which threads of a process run its signal handlers: the application's own.
#pragma once

#include <csignal>
#include <pthread.h>

#include "core/write_signals.hpp"

namespace weftio::detail {

/// While it lives, threads that the calling thread starts, itself or inside a library, begin with signals blocked: a
/// handler of the application never runs on a thread of ours. Not blocked are signals that a thread raises by what it
/// does, and a profiler's.
///
/// Signals to the calling thread wait meanwhile; those to the process go to its other threads. What a write of a library
/// raises ends with this: EAL can do without the file that the process's limit forbids, and the signal would end the
/// process as soon as it is not blocked any more.
class signals_blocked {
 public:
    signals_blocked() noexcept
    {
        sigset_t blocked;
        sigfillset(&blocked);
        for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF})
            sigdelset(&blocked, own);
        pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;
    ~signals_blocked()
    {
        writes_only_fail_.take();
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

 private:
    const no_write_signals writes_only_fail_;
    sigset_t before_;
};

} // namespace weftio::detail
