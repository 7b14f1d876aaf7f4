#include "initiated/proxy.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "common/on_core.hpp"

namespace weftio::bench {

/// The requests of a ring from one position on.
class proxies::taker {
 public:
    taker(proxy_ring ring, std::span<proxy_queue> queues)
        : ring_(ring), queues_(queues), taken_(weftio_load_relaxed_u32(&ring.words->posted)), reported_(taken_)
    {}

    /// Posts what the kernel has put into the ring, and reports what is done. Returns false if a queue has failed.
    bool turn()
    {
        const std::uint32_t posted = weftio_load_acquire_sys_u32(&ring_.words->posted);
        while (taken_ != posted)
            if (!post_run(posted))
                return false;
        report();
        return true;
    }
    bool all_done() const { return weftio_load_acquire_sys_u32(&ring_.words->posted) == reported_; }
    void fail() const { weftio_store_release_sys_u32(&ring_.words->failed, 1); }

 private:
    initiated_write at(std::uint32_t position) const
    {
        const weftio_u32* const words = ring_.requests + std::size_t{position & (ring_.depth - 1)} * 4;
        return {words[0], words[1], words[2], words[3]};
    }
    static std::uint32_t queue_of(const initiated_write& write)
    {
        return write.shape >> INITIATED_QUEUE_SHIFT & (INITIATED_MOST_QUEUES - 1);
    }
    /// Posts the requests for one queue that come next, with one commit.
    bool post_run(std::uint32_t posted)
    {
        initiated_write write = at(taken_);
        const std::uint32_t number = queue_of(write);
        proxy_queue& queue = queues_[number];
        if (weftio_dev_rdma_wait_room(queue.rdma, 1, INITIATED_PATIENCE_NS) != WEFTIO_DEV_OK)
            return false;
        const std::uint32_t room = weftio_dev_send_room(&queue.rdma->queue.ring, posted - taken_);
        std::uint32_t count = 0;
        do {
            if (weftio_dev_rdma_enqueue_weak(queue.rdma, initiated_request(queue.remote, queue.here, write),
                                             queue.position + count, WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK)
                return false;
            if (++count == room || taken_ + count == posted)
                break;
            write = at(taken_ + count);
        } while (queue_of(write) == number);
        queue.position += count;
        taken_ += count;
        last_ = number;
        return weftio_dev_rdma_commit_weak(queue.rdma, count) == WEFTIO_DEV_OK;
    }
    /// One queue: what it has done. Several: what was taken, which is all that the kernel waits for.
    void report()
    {
        if (reported_ == taken_)
            return;
        std::uint32_t done = taken_;
        if (ring_.one_queue && last_) {
            const proxy_queue& queue = queues_[*last_];
            done -= queue.position - weftio_dev_send_queue_completed(&queue.rdma->queue);
        }
        if (done == reported_)
            return;
        reported_ = done;
        weftio_store_release_sys_u32(&ring_.words->done, done);
    }

    proxy_ring ring_;
    std::span<proxy_queue> queues_;
    std::uint32_t taken_, reported_;
    std::optional<std::uint32_t> last_;
};

proxies::proxies(std::span<const proxy_ring> rings, std::vector<proxy_queue> queues, std::uint32_t threads,
                 const std::vector<int>& cores)
    : queues_(std::move(queues)), takers_(threads), shares_a_core_(cores.empty())
{
    for (std::size_t each = 0; each < rings.size(); ++each)
        takers_[each % threads].emplace_back(rings[each], queues_);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        std::optional<on_core> here;
        if (!cores.empty())
            here.emplace(cores[thread]);
        threads_.emplace_back([this, thread] { serve(takers_[thread]); });
    }
}

proxies::~proxies()
{
    join();
}

void proxies::serve(std::span<taker> mine)
{
    for (bool going = true; going;) {
        going = !ending_.load(std::memory_order_acquire);
        for (taker& each : mine) {
            if (!each.turn()) {
                each.fail();
                failed_ = true;
                return;
            }
            going = going || !each.all_done();
        }
        if (shares_a_core_)
            std::this_thread::yield();
    }
}

void proxies::join()
{
    ending_ = true;
    threads_.clear();
}

void proxies::end()
{
    join();
    if (failed_)
        throw error(errc::device_error, "initiated_bench: a queue pair of a proxy has failed; the log says which");
}

std::unique_ptr<proxies> proxies_for(const ways& ways, const column& how, const fabric& fabric)
{
    if (how.who == poster::kernel)
        return nullptr;
    return std::make_unique<proxies>(ways.rings(), ways.queues(), how.threads, fabric.cores().proxies);
}

void end(std::span<running_kernel> kernels, proxies* serving, const column& how)
{
    for (running_kernel& each : kernels)
        if (!each.wait_for(std::chrono::minutes(1)))
            throw error(errc::timed_out,
                        fmt::format("initiated_bench: {}: the kernel has not ended in a minute", how.name));
    if (serving)
        serving->end();
}

} // namespace weftio::bench
