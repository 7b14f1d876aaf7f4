// pthread_cancel() of a thread that is inside the library.
#pragma once

#include <pthread.h>

namespace weftio::core {

/// While it lives the calling thread is not cancelled; afterwards it may be. For waits whose end others rely on, as
/// they use what lies on the stack of the thread that waits, and for destructors, which an exception must not leave.
class not_cancelled {
 public:
    not_cancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    not_cancelled(const not_cancelled&) = delete;
    not_cancelled& operator=(const not_cancelled&) = delete;
    ~not_cancelled() { pthread_setcancelstate(before_, nullptr); }

 private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

} // namespace weftio::core
