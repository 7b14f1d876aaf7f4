// Completion channels and completion queues.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <exception>
#include <functional>
#include <span>

#include "commands.hpp"
#include "core/guarded.hpp"
#include "core/log.hpp"
#include "events.hpp"
#include "refusals.hpp"

namespace weftio::verbs {

namespace {

constexpr std::size_t record_bytes = 8;
constexpr std::uint32_t most_entries = 1u << 22;

/// Notifies the program of completions. Runs in the NIC's engine thread.
void tell(completions& of) noexcept
try {
    const ib_uverbs_comp_event_desc event{.cq_handle = of.user_handle};
    of.tells->events.push(std::as_bytes(std::span(&event, 1)));
    of.events_reported.fetch_add(1, std::memory_order_relaxed);
} catch (const std::exception& why) { // no memory
    core::log_or_lose(log_level::error, [&] { return fmt::format("weftio-run: lost an event: {}", why.what()); });
}

/// Sets the arming word to a value that no program writes: the program's first arming word may be all zeros, and must
/// differ.
void mark_never_armed(std::uint64_t record)
{
    constexpr std::uint32_t never = 0xffffffff;
    require(core::guarded_copy(reinterpret_cast<void*>(record + sizeof never), &never, sizeof never), EFAULT);
}

void require_writable(std::uint64_t address, std::size_t bytes)
{
    constexpr std::size_t page_bytes = 4096;
    for (std::size_t at = 0; at < bytes; at += page_bytes) {
        auto* const byte = reinterpret_cast<std::byte*>(address + at);
        require(core::guarded_copy(byte, byte, 1), EFAULT);
    }
}

/// Makes the queue and returns its handle. @param asked  converted from either form of the command
std::uint32_t make_queue(context& in, const ib_uverbs_ex_create_cq& asked, const mlx5_ib_create_cq& of_driver)
{
    constexpr std::int32_t no_channel = -1;
    constexpr std::uint16_t known_flags = MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;
    require(asked.cqe != 0 && asked.cqe < most_entries && asked.comp_vector == 0 && asked.comp_mask == 0, EINVAL);
    require_feature((asked.flags & ~std::uint32_t{IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN}) == 0,
                    "the device has no timestamps of completions");
    require_feature(of_driver.cqe_comp_en == 0 && (of_driver.flags & ~known_flags) == 0,
                    "the device has no compressed or padded completions");
    require(of_driver.cqe_size == 64 || of_driver.cqe_size == 128, EINVAL);
    auto made = std::make_shared<completions>();
    made->user_handle = asked.user_handle;
    const std::uint32_t entries = std::bit_ceil(asked.cqe + 1);
    made->ring_bytes =
        in.of.memory.adopt(reinterpret_cast<void*>(of_driver.buf_addr), std::size_t{entries} * of_driver.cqe_size);
    made->record_bytes = in.of.memory.adopt(reinterpret_cast<void*>(of_driver.db_addr), record_bytes);
    mark_never_armed(of_driver.db_addr);
    if (asked.comp_channel != no_channel)
        made->tells = use(in.channels.find(static_cast<std::uint32_t>(asked.comp_channel)));
    const std::function<void()> notify = [&of = *made] { tell(of); };
    made->queue.emplace(in.of.port, in.of.memory,
                        completion_queue_options{.entries = entries,
                                                 .entry_bytes = of_driver.cqe_size,
                                                 .overrun = (asked.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0
                                                                ? completion_overrun::ignore
                                                                : completion_overrun::fail,
                                                 .ring = {.of = &made->ring_bytes},
                                                 .record = {.of = &made->record_bytes},
                                                 .events = static_cast<bool>(made->tells),
                                                 .on_event = notify});
    const std::uint32_t handle = in.next_handle();
    in.completion_queues.add(handle, made);
    return handle;
}

} // namespace

/// Also forgets channels that the program has closed, because the new descriptor may have an old number.
void create_comp_channel(context& in, call& what)
{
    auto made = std::make_shared<channel>();
    const auto number = static_cast<std::uint32_t>(made->events.program());
    ib_uverbs_create_comp_channel_resp core{};
    core.fd = number;
    what.respond_or([&] { close(made->events.program()); }, core);
    in.channels.remove(number);
    in.channels.add(number, made);
    in.watch_channel(number, made);
}

void create_cq(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_create_cq>();
    ib_uverbs_ex_create_cq same{};
    same.user_handle = asked.user_handle;
    same.cqe = asked.cqe;
    same.comp_vector = asked.comp_vector;
    same.comp_channel = asked.comp_channel;
    ib_uverbs_create_cq_resp core{};
    core.cq_handle = make_queue(in, same, what.driver<mlx5_ib_create_cq>());
    const completion_queue& made = *in.completion_queues.find(core.cq_handle)->queue;
    core.cqe = made.entries() - 1;
    what.respond_or([&] { in.completion_queues.remove(core.cq_handle); }, core,
                    mlx5_ib_create_cq_resp{.cqn = made.number(), .reserved = 0});
}

void create_cq_extended(context& in, call& what)
{
    ib_uverbs_ex_create_cq_resp core{};
    core.base.cq_handle = make_queue(in, what.request<ib_uverbs_ex_create_cq>(), what.driver<mlx5_ib_create_cq>());
    const completion_queue& made = *in.completion_queues.find(core.base.cq_handle)->queue;
    core.base.cqe = made.entries() - 1;
    core.response_length = sizeof core;
    what.respond_or([&] { in.completion_queues.remove(core.base.cq_handle); }, core,
                    mlx5_ib_create_cq_resp{.cqn = made.number(), .reserved = 0});
}

/// libmlx5 copies unread completions to the new ring, up to the completion that ends the old one. The library has
/// copied them to the same positions before, so the second copy does no harm.
void resize_cq(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_resize_cq>();
    const auto of_driver = what.driver<mlx5_ib_resize_cq>();
    completions& resized = *in.completion_queues.find(asked.cq_handle);
    require(asked.cqe != 0 && asked.cqe < most_entries, EINVAL);
    const std::uint32_t entries = std::bit_ceil(asked.cqe + 1);
    if (entries != resized.queue->entries()) {
        require(of_driver.cqe_size == 64 || of_driver.cqe_size == 128, EINVAL);
        const std::size_t bytes = std::size_t{entries} * of_driver.cqe_size;
        require_writable(of_driver.buf_addr, bytes);
        memory ring = in.of.memory.adopt(reinterpret_cast<void*>(of_driver.buf_addr), bytes);
        resized.queue->resize(entries, of_driver.cqe_size, {.of = &ring});
        resized.ring_bytes = std::move(ring);
    }
    ib_uverbs_resize_cq_resp core{};
    core.cqe = entries - 1;
    what.respond(core);
}

void destroy_cq(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_destroy_cq>().cq_handle;
    const std::shared_ptr<completions> ended = in.completion_queues.find(handle, in.why_missing(handle));
    require(ended->users == 0, EBUSY);
    ended->queue.reset(); // no event comes after this
    ib_uverbs_destroy_cq_resp core{};
    core.comp_events_reported = ended->events_reported;
    if (ended->tells)
        core.comp_events_reported -= ended->tells->events.withdraw(ended->user_handle);
    core.async_events_reported = end_events(in, ended->async, ended->user_handle);
    in.completion_queues.remove(handle);
    what.respond(core);
}

} // namespace weftio::verbs
