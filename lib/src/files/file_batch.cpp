#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cancellation.hpp"
#include "core/process.hpp"
#include "storage/synchronous.hpp"
#include "storage/transfer_queue.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio {

namespace {

unsigned checked(unsigned capacity)
{
    if (capacity < 1 || capacity > 65536)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file_batch: capacity is {}; set 1 to 65536", capacity));
    return capacity;
}

} // namespace

struct file_batch::state {
    state(std::shared_ptr<storage::context> of, unsigned most)
        : engine(std::move(of)), capacity(checked(most)), queue(*engine, engine->make_transfer_way(), most)
    {
        engine->require_process();
    }

    storage::request request_of(const file_operation& asked) const
    {
        if (!asked.on)
            throw error(errc::invalid_argument, "weftio: file_batch: an operation has no file; set file_operation::on");
        if (asked.what != file_operation::kind::read && asked.what != file_operation::kind::write)
            throw error(errc::invalid_argument,
                        fmt::format("weftio: file_batch: an operation has kind {}; set read or write",
                                    static_cast<unsigned>(asked.what)));
        auto file = detail::internals::share(*asked.on);
        if (&file->engine() != engine.get())
            throw error(
                errc::invalid_argument,
                "weftio: file_batch: an operation's file belongs to another engine; create both on the same engine");
        storage::place memory = detail::internals::place(asked.memory);
        storage::locate(*engine, memory);
        return {asked.what == file_operation::kind::read ? storage::io::kind::read : storage::io::kind::write,
                std::move(file),
                std::move(memory),
                asked.bytes,
                asked.offset,
                reinterpret_cast<std::uintptr_t>(asked.cookie)};
    }
    std::size_t take(std::span<file_event> events)
    {
        std::size_t count = 0;
        storage::ended ended;
        for (; count != events.size() && queue.take({&ended, 1}) != 0; ++count)
            events[count] = {reinterpret_cast<void*>(ended.tag), ended.result};
        return count;
    }

    const std::shared_ptr<storage::context> engine;
    const unsigned capacity;
    std::mutex mutex; ///< guards `queue`
    storage::transfer_queue queue;
};

file_batch::file_batch(const file_engine& engine, unsigned capacity)
    : state_(core::make_shared_here<state>(detail::internals::share(engine), capacity))
{}
file_batch::file_batch(file_batch&&) noexcept = default;
file_batch& file_batch::operator=(file_batch&&) noexcept = default;
file_batch::~file_batch() = default;

bool file_batch::submit(std::span<const file_operation> operations)
{
    state_->engine->require_process();
    const core::not_cancelled until_submitted;
    storage::find_cuda_driver();
    std::vector<storage::request> requests;
    requests.reserve(operations.size());
    for (const file_operation& each : operations)
        requests.push_back(state_->request_of(each));
    const std::lock_guard lock(state_->mutex);
    if (requests.size() > state_->capacity - state_->queue.in_flight() - state_->queue.untaken())
        return false;
    for (storage::request& each : requests)
        (void)state_->queue.submit(std::move(each));
    state_->queue.poll();
    return true;
}

std::size_t file_batch::status(std::size_t least, std::span<file_event> events, std::chrono::nanoseconds timeout)
{
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds slice = std::chrono::milliseconds(1), longest = std::chrono::hours(24 * 365);
    state_->engine->require_process();
    const core::not_cancelled until_taken;
    const auto until = clock::now() + std::min(timeout, longest);
    least = std::min(least, events.size());
    for (std::size_t count = 0;;) {
        {
            const std::lock_guard lock(state_->mutex);
            state_->queue.poll();
            count += state_->take(events.subspan(count));
            const auto left = std::chrono::nanoseconds(until - clock::now());
            if (count >= least || state_->queue.in_flight() == 0 || left.count() <= 0)
                return count;
            state_->queue.wait(std::min(left, slice));
            count += state_->take(events.subspan(count));
        }
        std::this_thread::yield(); // others may want the lock
    }
}

void file_batch::cancel()
{
    state_->engine->require_process();
    const std::lock_guard lock(state_->mutex);
    state_->queue.cancel_all();
    state_->queue.poll();
}

unsigned file_batch::capacity() const noexcept
{
    return state_->capacity;
}

std::size_t file_batch::in_flight() const
{
    const std::lock_guard lock(state_->mutex);
    return state_->queue.in_flight();
}

} // namespace weftio
