#include "watch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "log.hpp"
#include "object.hpp"

namespace weftio::doca {
namespace {

class watcher;
watcher& the_watcher();

using steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds pause{500};
constexpr std::chrono::seconds bound{2};

struct watched {
    const eth_rxq* queue;
    std::uint32_t beats = 0;   ///< at the last look
    std::uint64_t dropped = 0; ///< when they grew last
    steady::time_point since = steady::now();
    bool is_reported = false;

    void look();

 private:
    void report(const weftio_dev_control& control, std::uint64_t lost);
};

void watched::look()
{
    const weftio_dev_control& control = *queue->control();
    if (const std::uint32_t seen = weftio_load_relaxed_u32(&control.beats); seen != beats) {
        *this = {.queue = queue, .beats = seen, .dropped = queue->counters().out_of_buffer};
        return;
    }
    if (beats != 0 && !is_reported && steady::now() - since >= bound)
        report(control, queue->counters().out_of_buffer - dropped);
}

void watched::report(const weftio_dev_control& control, std::uint64_t lost)
{
    const bool is_inside = weftio_load_relaxed_u32(&control.function) == WEFTIO_DEV_FUNCTION_RECEIVE;
    if (!is_inside && lost == 0)
        return;
    is_reported = true;
    const auto where = fmt::format("block {}, packet {}", weftio_load_relaxed_u32(&control.block),
                                   weftio_load_relaxed_u32(&control.index));
    if (is_inside)
        log_warning(fmt::format("receive queue {}: a kernel in a receive call ({}) has given no sign of life for {} s: "
                                "it hangs, or an error has ended it, which cudaDeviceSynchronize() returns",
                                queue->number(), where, bound.count()));
    else
        log_warning(fmt::format("receive queue {}: no kernel has received for {} s, in which {} packets were dropped: "
                                "it hangs in its own code, is too slow, or has ended (last in {})",
                                queue->number(), bound.count(), lost, where));
}

/// The thread, which runs from the first queue to the end of the process.
class watcher {
 public:
    watcher()
    {
        std::atexit([] { the_watcher().end(); });
    }
    /// Before what queues are made of is torn down.
    void end() noexcept
    {
        if (is_child_of_user()) // it has no such thread
            return;
        {
            std::lock_guard lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable())
            thread_.join();
    }
    void add(const eth_rxq& queue)
    {
        std::lock_guard lock(mutex_);
        queues_.push_back({.queue = &queue});
        if (!thread_.joinable() && !ends_)
            thread_ = std::thread([this] { run(); });
    }
    void remove(const eth_rxq& queue) noexcept
    {
        std::lock_guard lock(mutex_);
        std::erase_if(queues_, [&](const watched& one) { return one.queue == &queue; });
    }

 private:
    void run()
    {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, pause, [this] { return ends_; }))
            for (watched& one : queues_)
                one.look();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<watched> queues_;
    std::thread thread_;
    bool ends_ = false;
};

/// Never destroyed: programs destroy queues from their own destructors.
watcher& the_watcher()
{
    static auto* one = new watcher;
    return *one;
}

} // namespace

void watch(const eth_rxq& queue)
{
    the_watcher().add(queue);
}

void unwatch(const eth_rxq& queue) noexcept
{
    the_watcher().remove(queue);
}

} // namespace weftio::doca
