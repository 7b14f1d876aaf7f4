#include "storage/stream_order.hpp"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "core/signals.hpp"
#include "devices/cuda/driver.hpp"
#include "storage/memories.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

task_thread::~task_thread()
{
    if (!thread_.joinable())
        return;
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->ends = true;
        shared_->filled.notify_one();
    }
    if (thread_.get_id() == std::this_thread::get_id())
        thread_.detach(); // it ends when its task has returned
    else
        thread_.join();
}

void task_thread::add(task task)
{
    const std::lock_guard lock(shared_->mutex);
    if (!thread_.joinable()) {
        const core::signals_blocked for_the_thread;
        thread_ = std::thread([shared = shared_] { serve(shared); });
    }
    shared_->tasks.push_back(std::move(task));
    shared_->filled.notify_one();
}

void task_thread::run(const task& task)
{
    std::promise<void> ended;
    add([&] {
        task();
        ended.set_value();
    });
    ended.get_future().wait();
}

void task_thread::serve(const std::shared_ptr<shared>& shared)
{
    std::unique_lock lock(shared->mutex);
    for (;;) {
        shared->filled.wait(lock, [&] { return !shared->tasks.empty() || shared->ends; });
        if (shared->tasks.empty())
            return;
        task first = std::move(shared->tasks.front());
        shared->tasks.pop_front();
        lock.unlock();
        first();
        first = nullptr; // what it has kept alive may end here
        lock.lock();
    }
}

namespace {

/// What a stream holds of a task. CUDA must not be called where the stream calls us, so another thread executes it.
struct held_task {
    std::shared_ptr<task_thread> by;
    task_thread::task task;
};

void execute_held(void* context)
{
    const std::unique_ptr<held_task> held(static_cast<held_task*>(context));
    held->by->run(held->task);
}

} // namespace

void enqueue(void* stream, const std::shared_ptr<task_thread>& by, task_thread::task task)
{
    constexpr int invalid_context = 201;
    find_cuda_driver();
    const devices::cuda::driver* driver = cuda_driver();
    if (!driver && stream)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: file: stream {} was passed, but the process has no CUDA driver; pass the null stream",
                        stream));
    if (!driver)
        return by->add(std::move(task));
    auto held = std::make_unique<held_task>(held_task{by, std::move(task)});
    const auto status = driver->cuLaunchHostFunc(static_cast<devices::cuda::stream>(stream), execute_held, held.get());
    if (!stream && status == invalid_context)
        return by->add(std::move(held->task));
    driver->check(status, "enqueuing an operation on a file");
    held.release(); // the stream's
}

} // namespace weftio::storage
