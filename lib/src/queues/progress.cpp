#include "weftio/progress.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "queues/reported_queue.hpp"
#include "weftio/error.hpp"

namespace weftio {

struct progress_engine::attachment {
    struct hold {
        std::shared_ptr<queues::reported_queue> queue;
        ~hold()
        {
            if (queue)
                queue->attached.store(false);
        }
    };

    std::unique_ptr<hold> held;
    callbacks call;

    unsigned report();
};

progress_engine::progress_engine() = default;
progress_engine::progress_engine(progress_engine&&) noexcept = default;
progress_engine& progress_engine::operator=(progress_engine&&) noexcept = default;
progress_engine::~progress_engine() = default;

void progress_engine::attach(std::shared_ptr<queues::reported_queue> queue, callbacks callbacks)
{
    auto held = std::make_unique<attachment::hold>();
    if (queue->attached.exchange(true))
        throw error(errc::in_use,
                    fmt::format("weftio: {} {}: already attached to a progress_engine; attach a queue to one only",
                                queue->kind(), queue->reports().number()));
    held->queue = std::move(queue);
    attached_.push_back({std::move(held), std::move(callbacks)});
}

void progress_engine::attach(const eth_txq& queue, callbacks callbacks)
{
    attach(detail::internals::reports(queue), std::move(callbacks));
}

void progress_engine::attach(const dma_queue& queue, callbacks callbacks)
{
    attach(detail::internals::reports(queue), std::move(callbacks));
}

void progress_engine::attach(const file_queue& queue, callbacks callbacks)
{
    attach(detail::internals::reports(queue), std::move(callbacks));
}

void progress_engine::attach(const rdma_queue& queue, callbacks callbacks)
{
    attach(detail::internals::reports(queue), std::move(callbacks));
}

void progress_engine::attach(const queue_pair& queue, callbacks callbacks)
{
    attach(detail::internals::reports(queue), std::move(callbacks));
}

/// Send step 7 of docs/architecture.md, on the host: calls back for each event of the queue.
unsigned progress_engine::attachment::report()
{
    unsigned seen = 0;
    nic::send_queue& queue = held->queue->reports();
    for (nic::send_outcome each; queue.next(each); ++seen) {
        if (each.syndrome == 0) {
            if (call.on_sent)
                call.on_sent({.queue = queue.number(), .position = each.position, .time_ns = each.time_ns});
        } else if (call.on_error) {
            call.on_error({.queue = queue.number(),
                           .position = each.position,
                           .syndrome = each.syndrome,
                           .text = std::move(each.text),
                           .time_ns = each.time_ns,
                           .what = each.what,
                           .reason = each.reason});
        }
    }
    return seen;
}

unsigned progress_engine::progress()
{
    unsigned seen = 0;
    for (auto each = attached_.begin(); each != attached_.end();) {
        bool queue_is_gone = each->held->queue.use_count() == 1;
        seen += each->report();
        each = queue_is_gone ? attached_.erase(each) : std::next(each);
    }
    return seen;
}

} // namespace weftio
