#include "connections/connection_end.hpp"

#include <utility>

namespace weftio::connections {

void connection_end::told(const cm::event& next)
{
    const std::scoped_lock lock(mutex_);
    if (now_ == phase::over)
        return;
    switch (next.kind) {
        case cm::event_kind::connect_response: now_ = phase::answered; break;
        case cm::event_kind::established: now_ = phase::established; break;
        default: finish(); break;
    }
    last_ = next;
    changed_.notify_all();
}

/// The peer has ended the connection, or never begun it. @pre mutex_ is locked
void connection_end::finish()
{
    const bool was_established = now_ == phase::established;
    if (const auto queue = std::exchange(queue_, nullptr))
        queue->fail();
    now_ = phase::over;
    if (was_established && !local_ && on_disconnect_)
        on_disconnect_();
}

void connection_end::use(std::shared_ptr<rdma::connectable> queue, std::function<void()> on_disconnect)
{
    const std::scoped_lock lock(mutex_);
    if (now_ == phase::over)
        return queue->fail();
    queue_ = std::move(queue);
    on_disconnect_ = std::move(on_disconnect);
}

bool connection_end::establish()
{
    const std::scoped_lock lock(mutex_);
    if (now_ != phase::over)
        now_ = phase::established;
    return now_ == phase::established;
}

bool connection_end::end()
{
    const std::scoped_lock lock(mutex_);
    if (const auto queue = std::exchange(queue_, nullptr)) // no later event may touch it: the user may use it anew
        queue->fail();
    return !std::exchange(local_, true) && now_ == phase::established;
}

connection_end::phase connection_end::now() const
{
    const std::scoped_lock lock(mutex_);
    return local_ ? phase::over : now_;
}

cm::event connection_end::last() const
{
    const std::scoped_lock lock(mutex_);
    return last_;
}

bool connection_end::wait(phase before, std::chrono::steady_clock::time_point until) const
{
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, until, [&] { return now_ != before; });
}

} // namespace weftio::connections
