// Which threads of a process run its signal handlers: the application's own.
#pragma once

#include <csignal>
#include <pthread.h>

#include "core/write_signals.hpp"

namespace weftio::core {

/// While it lives, threads that the calling thread starts, also inside a library, begin with signals blocked, so that
/// no signal handler of the application runs on a thread of the library. Signals that a thread raises by its own
/// instructions, and SIGPROF, stay unblocked.
///
/// Signals sent to the calling thread stay pending meanwhile; those sent to the process go to its other threads. The
/// destructor discards a pending SIGXFSZ or SIGPIPE that a library's write has raised: EAL survives the write that the
/// file size limit forbids, but the signal would end the process once it is unblocked.
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

} // namespace weftio::core
