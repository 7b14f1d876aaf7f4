// DMA contexts: a queue of the device's engine for kernels, or tasks of the CPU.
#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <optional>

#include "buf.hpp"
#include "ctx.hpp"
#include "doca_dma.h"
#include "doca_gpunetio_dev_dma.cuh"
#include "kernel_calls.hpp"
#include "log.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/progress.hpp"

using namespace weftio::doca;

struct doca_dma : doca_ctx, std::enable_shared_from_this<doca_dma> {
    static constexpr const char* noun = "DMA context";
    static constexpr std::uint32_t most_tasks = 32768;

    explicit doca_dma(std::shared_ptr<doca_dev> on) : dev(std::move(on)) {}
    ~doca_dma() override { abandon(); }

    void start() override;
    void stop() override;
    bool busy() const override { return !tasks_.empty(); }
    bool progress() override;
    void submit(std::shared_ptr<doca_dma_task_memcpy> task);
    doca_gpu_dma* handle() const;

    const std::shared_ptr<doca_dev> dev;
    doca_dma_task_memcpy_completion_cb_t on_success = nullptr, on_error = nullptr;
    std::uint32_t most = 0; ///< tasks that are allocated at a time
    std::shared_ptr<std::atomic<std::uint32_t>> allocated = std::make_shared<std::atomic<std::uint32_t>>(0);

 private:
    void enqueue();
    void failed(const weftio::send_failure& failure);
    void sent(std::uint32_t position);
    void restart_behind_failure();
    void end_queue();
    void abandon();
    void finish_first(doca_error_t status);

    std::optional<weftio::dma_queue> queue_;
    std::optional<weftio::progress_engine> events_;
    weftio::doca::kernel_table handle_;
    std::deque<std::shared_ptr<doca_dma_task_memcpy>> tasks_;  ///< in progress, the oldest first
    std::size_t enqueued_ = 0;                                 ///< of tasks_, whose entries are all in the ring
    std::vector<std::shared_ptr<doca_dma_task_memcpy>> ended_; ///< that wait for their callbacks
    std::optional<std::uint32_t> failed_at_;                   ///< position of the entry that has failed
};

struct doca_dma_task_memcpy : doca_task {
    doca_dma_task_memcpy(const std::shared_ptr<doca_dma>& of, std::shared_ptr<const doca_buf> from,
                         std::shared_ptr<doca_buf> to, doca_data data)
        : dma(of), source(std::move(from)), destination(std::move(to)), user_data(data), allocated_(of->allocated)
    {}
    ~doca_dma_task_memcpy() override { --*allocated_; }
    void submit() override;
    void require_fit() const
    {
        const std::size_t room = destination->bytes - destination->data_bytes;
        require(source->data_bytes && source->data_bytes <= room, DOCA_ERROR_INVALID_VALUE,
                "{} bytes of data do not go into a buffer with room for {} behind its data", source->data_bytes, room);
    }

    const std::weak_ptr<doca_dma> dma;
    const std::shared_ptr<const doca_buf> source;
    const std::shared_ptr<doca_buf> destination;
    const doca_data user_data;
    std::size_t bytes = 0, enqueued = 0; ///< of the copy, and how many are in the ring
    std::uint32_t last = 0;              ///< position of the entry that was enqueued last

 private:
    const std::shared_ptr<std::atomic<std::uint32_t>> allocated_;
};

void doca_dma::start()
{
    require(gpu || on_success, DOCA_ERROR_BAD_STATE,
            "it has no GPU and no tasks; call doca_ctx_set_datapath_on_gpu or doca_dma_task_memcpy_set_conf first");
    events_.reset();
    end_queue();
    const auto on = gpu ? gpu->device : weftio::device::open("cpu");
    queue_.emplace(dev->dma(), on, weftio::dma_queue_options{.entries = std::max(1024u, std::bit_ceil(most))});
    events_.emplace();
    events_->attach(*queue_, {.on_sent = [this](const weftio::send_notification& event) { sent(event.position); },
                              .on_error = [this](const weftio::send_failure& event) { failed(event); }});
    if (!gpu)
        return;
    handle_ = weftio::doca::kernel_table::of(gpu->device, gpu->tables, doca_gpu_dma{queue_->handle()});
}

void doca_dma::stop()
{
    if (!connected) // nobody would see the tasks end
        abandon();
    else if (gpu)
        progress();
}

void doca_dma::end_queue()
{
    if (queue_ && gpu)
        end_waits(*queue_->control());
    queue_.reset();
}

/// What is in progress ends without a callback.
void doca_dma::abandon()
{
    end_queue();
    while (!tasks_.empty())
        finish_first(DOCA_ERROR_SHUTDOWN);
    ended_.clear();
    failed_at_.reset();
}

void doca_dma::finish_first(doca_error_t status)
{
    auto& task = *tasks_.front();
    if (status == DOCA_SUCCESS)
        task.destination->data_bytes += task.bytes;
    task.status = status;
    ended_.push_back(std::move(tasks_.front()));
    tasks_.pop_front();
    enqueued_ -= enqueued_ ? 1 : 0;
}

void doca_dma::submit(std::shared_ptr<doca_dma_task_memcpy> task)
{
    require_running();
    tasks_.push_back(std::move(task));
    tasks_.back()->status = DOCA_ERROR_IN_PROGRESS;
    enqueue();
}

/// Gives the engine as many entries as the ring has room for.
void doca_dma::enqueue()
try {
    for (; !failed_at_ && enqueued_ < tasks_.size(); ++enqueued_)
        for (auto& task = *tasks_[enqueued_]; task.enqueued < task.bytes;) {
            const std::size_t part = std::min<std::size_t>(task.bytes - task.enqueued, WEFTIO_DEV_DMA_MOST_BYTES);
            const bool is_last = task.enqueued + part == task.bytes;
            const auto position =
                queue_->submit(weftio::dma_copy{.source = task.source->part(task.enqueued, part),
                                                .destination = task.destination->part(
                                                    task.destination->data_bytes + task.enqueued, part),
                                                .bytes = part},
                               is_last ? WEFTIO_DEV_SEND_NOTIFY : WEFTIO_DEV_SEND_NONE);
            if (!position)
                return;
            task.enqueued += part;
            task.last = *position;
        }
} catch (const weftio::error& reason) {
    if (reason.code() != weftio::errc::device_error) // an entry has failed: progress() is about to learn which
        throw;
}

void doca_dma::sent(std::uint32_t position)
{
    if (!tasks_.empty() && tasks_.front()->last == position)
        finish_first(DOCA_SUCCESS);
}

void doca_dma::failed(const weftio::send_failure& failure)
{
    log_failure("DMA", DOCA_ERROR_IO_FAILED, failure.text);
    failed_at_ = failure.position;
}

/// When the tasks before the failed one have ended: it ends, and those behind it, which the engine has flushed, are
/// given to it once more.
void doca_dma::restart_behind_failure()
{
    if (tasks_.empty() || tasks_.front()->last - *failed_at_ >= 1u << 31)
        return;
    queue_->reset();
    failed_at_.reset();
    finish_first(DOCA_ERROR_IO_FAILED);
    enqueued_ = 0;
    for (const auto& task : tasks_)
        task->enqueued = 0;
}

bool doca_dma::progress()
{
    if (!events_)
        return false;
    bool has_worked = events_->progress();
    if (gpu)
        return has_worked;
    if (failed_at_)
        restart_behind_failure();
    if (queue_)
        enqueue();
    const auto self = shared_from_this(); // a callback may destroy it
    for (const auto& task : std::exchange(ended_, {})) {
        has_worked = true;
        (task->status == DOCA_SUCCESS ? on_success : on_error)(task.get(), task->user_data, user_data);
    }
    return has_worked;
}

doca_gpu_dma* doca_dma::handle() const
{
    require_running();
    require(gpu != nullptr, DOCA_ERROR_BAD_STATE, "it has no GPU; call doca_ctx_set_datapath_on_gpu before it starts");
    return static_cast<doca_gpu_dma*>(handle_.device_address());
}

void doca_dma_task_memcpy::submit()
{
    const auto owner = dma.lock();
    require(owner != nullptr, DOCA_ERROR_BAD_STATE, "the DMA context of the task was destroyed");
    require(status != DOCA_ERROR_IN_PROGRESS, DOCA_ERROR_BAD_STATE, "the task is in progress already");
    require_fit();
    bytes = source->data_bytes;
    enqueued = 0;
    owner->submit(std::static_pointer_cast<doca_dma_task_memcpy>(known<doca_task>(this)));
}

doca_error_t doca_dma_create(doca_dev* dev, doca_dma** dma)
{
    return call(__func__, [&] { make_context(dma, known(dev)); });
}
doca_error_t doca_dma_destroy(doca_dma* dma)
{
    return call(__func__, [&] { destroy_context(dma); });
}
doca_ctx* doca_dma_as_ctx(doca_dma* dma)
{
    return as_context(__func__, dma);
}
doca_error_t doca_dma_get_gpu_handle(doca_dma* dma, doca_gpu_dma** handle)
{
    return call(__func__, [&] {
        auto* kernels = known(dma)->handle();
        result(handle, "handle") = kernels;
    });
}

doca_error_t doca_dma_task_memcpy_set_conf(doca_dma* dma, doca_dma_task_memcpy_completion_cb_t on_success,
                                           doca_dma_task_memcpy_completion_cb_t on_error, std::uint32_t tasks)
{
    return call(__func__, [&] {
        auto context = known(dma);
        require(on_success && on_error, DOCA_ERROR_INVALID_VALUE, "a callback is a null pointer");
        require(tasks && tasks <= doca_dma::most_tasks, DOCA_ERROR_INVALID_VALUE, "{} tasks, not 1 to {}", tasks,
                doca_dma::most_tasks);
        context->require_idle();
        context->on_success = on_success;
        context->on_error = on_error;
        context->most = tasks;
    });
}

doca_error_t doca_dma_task_memcpy_alloc_init(doca_dma* dma, const doca_buf* source, doca_buf* destination,
                                             doca_data user_data, doca_dma_task_memcpy** task)
{
    return call(__func__, [&] {
        auto context = known(dma);
        auto from = known(source);
        auto to = known(destination);
        auto& where = result(task, "task");
        context->require_running();
        require(!context->gpu && context->most, DOCA_ERROR_BAD_STATE,
                "tasks are for a context of the CPU, with doca_dma_task_memcpy_set_conf before it starts");
        if (context->allocated->fetch_add(1) >= context->most) {
            --*context->allocated;
            fail(DOCA_ERROR_NO_MEMORY, "all {} tasks are allocated", context->most);
        }
        auto made = std::make_shared<doca_dma_task_memcpy>(context, std::move(from), std::move(to), user_data);
        made->require_fit();
        where = made.get();
        living<doca_task>::add(std::move(made));
    });
}
doca_task* doca_dma_task_memcpy_as_task(doca_dma_task_memcpy* task)
{
    doca_task* same = nullptr;
    call(__func__, [&] { same = known<doca_task>(task).get(); });
    return same;
}
