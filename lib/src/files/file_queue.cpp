#include "weftio/file_queue.hpp"

#include <fmt/format.h>

#include "core/process.hpp"
#include "core/signals.hpp"
#include "nic/file_backend.hpp"
#include "queues/host_submit.hpp"
#include "queues/live_queue.hpp"
#include "queues/reported_queue.hpp"
#include "queues/send_life.hpp"
#include "storage/context.hpp"
#include "weftio/error.hpp"

namespace weftio {

/// The engine of kernels' queues, which exists while it has queues or regions.
std::shared_ptr<nic::file_backend> detail::internals::backend(const file_engine& engine)
{
    storage::context& context = *engine.context_;
    context.require_process();
    if (context.options().only == file_way::cufile)
        throw error(errc::not_supported,
                    "weftio: file_queue: its file_engine uses NVIDIA's library only (only is cufile), which kernels' "
                    "queues cannot use; create it on an engine without `only`");
    const std::scoped_lock one_at_a_time(context.kernels_mutex);
    if (std::shared_ptr<storage::file_user> made = context.kernels.lock())
        return std::static_pointer_cast<nic::file_backend>(made);
    const core::undertaking undertaking;
    const core::signals_blocked for_its_thread;
    std::shared_ptr<nic::file_backend> made = nic::make_soft_files(engine.context_);
    context.kernels = made;
    return made;
}

struct file_queue::state final : queues::reported_queue {
    state(const file_engine& engine, const device& device, const file_queue_options& wanted)
        : where(device), options(wanted), backend(detail::internals::backend(engine)),
          queue(make_life(), [&](const nic::send_ring& ring) { return backend->make_queue(ring); })
    {}

    std::shared_ptr<queues::send_life> make_life() const
    {
        return core::make_shared_here<queues::send_life>(where,
                                                         queues::send_ring_options{.entries = options.entries,
                                                                                   .domain = options.domain,
                                                                                   .abi = WEFTIO_DEV_ABI_FILE_QUEUE,
                                                                                   .results = true});
    }
    const char* kind() const noexcept override { return "file_queue"; }
    nic::send_queue& reports() noexcept override { return *queue; }

    device where;
    file_queue_options options;
    std::shared_ptr<nic::file_backend> backend;
    queues::live_queue<queues::send_life, nic::file_send_queue> queue;
};

file_queue::file_queue(const file_engine& engine, const device& device, file_queue_options options)
{
    queues::require_send_entries("file_queue", options.entries);
    state_ = core::make_shared_here<state>(engine, device, options);
}

file_queue::file_queue(file_queue&&) noexcept = default;

file_queue& file_queue::operator=(file_queue&& other) noexcept
{
    file_queue before(std::move(other));
    state_.swap(before.state_);
    return *this;
}

file_queue::~file_queue()
{
    if (state_ && state_->may_end())
        state_->queue->stop_sending(); // a progress_engine that has attached the queue keeps the rest alive
}

weftio_dev_file_queue* file_queue::handle() const noexcept
{
    static_assert(sizeof(weftio_dev_file_queue) == sizeof(weftio_dev_send_queue));
    return reinterpret_cast<weftio_dev_file_queue*>(state_->queue.life()->handle());
}

weftio_dev_control* file_queue::control() const noexcept
{
    return state_->queue.life()->control();
}

namespace {

void require_in(const file_transfer& wanted)
{
    const weftio_dev_buf& buffer = wanted.buffer;
    const bool fits = wanted.bytes != 0 && wanted.bytes <= WEFTIO_DEV_FILE_MOST_BYTES &&
                      wanted.buffer_offset <= buffer.bytes && wanted.bytes <= buffer.bytes - wanted.buffer_offset;
    if (!fits)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file_queue: {} bytes at offset {} of the buffer, which has {} bytes; an entry "
                                "transfers 1 to {} bytes",
                                wanted.bytes, wanted.buffer_offset, buffer.bytes, WEFTIO_DEV_FILE_MOST_BYTES));
}

} // namespace

std::optional<std::uint32_t> file_queue::submit(const weftio_dev_file_request& request, std::uint32_t flags)
{
    queues::require_submit({"file_queue", number(), state_->where, state_->queue->stopped()}, flags,
                           WEFTIO_DEV_SEND_NOTIFY | WEFTIO_DEV_FILE_FENCE,
                           "WEFTIO_DEV_SEND_NOTIFY, WEFTIO_DEV_FILE_FENCE or WEFTIO_DEV_SEND_NONE");
    weftio_u32 position = 0;
    const bool fits = weftio_dev_file_enqueue_position(handle(), request, flags, &position) == WEFTIO_DEV_OK;
    queues::commit_from_host(
        handle()->queue); // also when the ring is full: of entries, perhaps, that a kernel has left behind
    return fits ? std::optional(position) : std::nullopt;
}

std::optional<std::uint32_t> file_queue::submit_read(const file_transfer& read, std::uint32_t flags)
{
    require_in(read);
    return submit(
        weftio_dev_file_read_request(read.file, read.file_offset, read.buffer, read.buffer_offset, read.bytes), flags);
}

std::optional<std::uint32_t> file_queue::submit_write(const file_transfer& write, std::uint32_t flags)
{
    require_in(write);
    return submit(
        weftio_dev_file_write_request(write.file, write.file_offset, write.buffer, write.buffer_offset, write.bytes),
        flags);
}

std::optional<std::uint32_t> file_queue::submit_sync(std::uint32_t file, std::uint32_t flags)
{
    return submit(weftio_dev_file_sync_request(file), flags);
}

unsigned file_queue::turn() const
{
    if (!state_->backend->is_inline())
        throw error(errc::invalid_argument, "weftio: file_queue: turn() is for inline mode, but its engine has a "
                                            "thread; create the file_engine with .mode = engine_mode::inline_worker");
    return state_->backend->turn();
}

std::uint32_t file_queue::entries() const noexcept
{
    return state_->options.entries;
}

std::uint32_t file_queue::number() const noexcept
{
    return state_->queue->number();
}

file_queue_counters file_queue::counters() const
{
    return state_->queue->counters();
}

bool file_queue::failed() const
{
    return state_->queue->failed();
}

void file_queue::reset()
{
    state_->queue.reset(state_->make_life());
}

std::shared_ptr<devices::lifeline> detail::internals::line(const file_queue& queue) noexcept
{
    return queue.state_->queue.life();
}

std::shared_ptr<queues::reported_queue> detail::internals::reports(const file_queue& queue) noexcept
{
    return queue.state_;
}

} // namespace weftio
