#include "weftio/completion_queue.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/process.hpp"
#include "nic/completion_backend.hpp"
#include "queues/placed.hpp"
#include "queues/ring_life.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_entries = 1u << 22, index_mask = 0xffffff, solicited_command = 1u << 24,
                        owner_bit = 1u << 24; // of a publication word

void check(const completion_queue_options& options)
{
    if (!std::has_single_bit(options.entries) || options.entries > most_entries)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: completion_queue: entries is {}; it must be a power of two from 1 to {}",
                                options.entries, most_entries));
    if (options.entry_bytes != 64 && options.entry_bytes != 128)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: completion_queue: entry_bytes is {}; set 64 or 128", options.entry_bytes));
    if (options.overrun > completion_overrun::ignore)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: completion_queue: overrun is {}; set completion_overrun::hold, fail or ignore",
                                static_cast<unsigned>(options.overrun)));
}

/// A descriptor that the NIC writes and the program reads.
class eventfd_event {
 public:
    eventfd_event() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
    {
        if (descriptor_ < 0)
            throw error(errc::device_error, fmt::format("weftio: completion_queue: no file descriptor for its events "
                                                        "({}); close some, or raise the limit (ulimit -n)",
                                                        std::strerror(errno)));
    }
    eventfd_event(const eventfd_event&) = delete;
    eventfd_event& operator=(const eventfd_event&) = delete;
    ~eventfd_event() { close(descriptor_); }
    int descriptor() const noexcept { return descriptor_; }
    void notify() const noexcept
    {
        const std::uint64_t one = 1;
        // write() fails only if the eventfd would overflow: the program has many unread notifications then.
        static_cast<void>(!write(descriptor_, &one, sizeof one));
    }

 private:
    const int descriptor_;
};

/// nullptr: the options request no descriptor.
std::shared_ptr<const eventfd_event> descriptor_for(const completion_queue_options& options)
{
    return options.events && !options.on_event ? std::make_shared<const eventfd_event>() : nullptr;
}

std::function<void()> event_of(const completion_queue_options& options, std::shared_ptr<const eventfd_event> own)
{
    if (own)
        return [to = std::move(own)] { to->notify(); };
    return options.events ? options.on_event : nullptr;
}

using event_count = std::atomic<std::uint32_t>;

/// `event`, counted first. An empty one stays empty.
std::function<void()> counted(std::function<void()> event, std::shared_ptr<event_count> count)
{
    if (!event)
        return nullptr;
    return [tell = std::move(event), told = std::move(count)] {
        told->fetch_add(1);
        tell();
    };
}

completion read(const weftio_cqe& from, std::uint32_t publication)
{
    const std::uint64_t time = weftio_swap64(from.timestamp_be);
    const std::uint32_t opcode = weftio_cqe_opcode(publication), queue = weftio_swap32(from.sop_drop_qpn_be);
    const bool failed = opcode == WEFTIO_CQE_OPCODE_REQUESTER_ERROR || opcode == WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
    return {.queue = queue & index_mask,
            .user_index = weftio_swap32(from.user_index_be),
            .opcode = static_cast<std::uint8_t>(opcode),
            .entry_opcode = static_cast<std::uint8_t>(queue >> 24),
            .index = static_cast<std::uint16_t>(weftio_cqe_wqe_counter(publication)),
            .bytes = weftio_swap32(from.byte_count_be),
            .immediate = weftio_swap32(from.immediate_be),
            .source_queue = weftio_swap32(from.flags_rqpn_be) & 0xffffff,
            .solicited = (publication >> 24 & WEFTIO_CQE_SOLICITED) != 0,
            .syndrome = static_cast<std::uint8_t>(failed ? time : 0),
            .reason = static_cast<std::uint8_t>(failed ? time >> 8 : 0),
            .time_ns = failed ? 0 : weftio_real_time_to_ns(time)};
}

/// The 64 bytes that are used.
weftio_cqe& entry_of(const nic::completion_memory& ring, std::uint32_t index) noexcept
{
    std::byte* const end =
        ring.entries.cpu<std::byte>() + (std::size_t{index & (ring.depth - 1)} + 1) * ring.entry_bytes;
    return *reinterpret_cast<weftio_cqe*>(end - sizeof(weftio_cqe));
}

nic::ring_memory entries_in(const device& device, std::uint32_t entries, std::uint32_t entry_bytes,
                            const memory_place& ring)
{
    nic::ring_memory made = queues::placed(
        {"completion_queue", "ring", std::size_t{entries} * entry_bytes, sizeof(weftio_cqe)}, ring, device);
    if (!ring.of) // a caller's ring is marked by the caller
        for (std::uint32_t entry = 0; entry < entries; ++entry)
            made.cpu<std::uint8_t>()[(std::size_t{entry} + 1) * entry_bytes - 1] = WEFTIO_CQE_NEVER_WRITTEN;
    return made;
}

} // namespace

/// A running kernel keeps it alive.
struct completion_queue::state final : devices::lifeline {
    state(const port& port, const device& device, const completion_queue_options& wanted);

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_memory.cpu_address());
    }
    const devices::device_backend& backend() const noexcept override { return detail::internals::backend(where); }
    std::string describe() const override
    {
        return fmt::format("completion_queue {}: {} entries{}", queue->number(), entries,
                           queue->overrun() ? ", overrun" : "");
    }
    void quiesce() override {} // those of its queues are stopped

    weftio_dev_completion_queue make_handle() const;
    void move_to(const nic::completion_memory& next);
    weftio_cqe& at(std::uint32_t index) const noexcept { return entry_of(memory, index); }

    const std::shared_ptr<nic::backend> nic;
    const device where;
    std::uint32_t entries;
    const std::shared_ptr<const eventfd_event> descriptor;
    const std::shared_ptr<event_count> told = std::make_shared<event_count>(0); ///< events so far
    nic::completion_memory memory;
    class memory control_memory, handle_memory;
    const std::shared_ptr<nic::completion_queue> queue;
    std::uint32_t polled = 0; ///< by the host
};

namespace {

nic::completion_memory memory_of(const device& device, const completion_queue_options& options,
                                 std::function<void()> event)
{
    constexpr std::size_t record_bytes = 8, record_alignment = 4;
    return {.entries = entries_in(device, options.entries, options.entry_bytes, options.ring),
            .depth = options.entries,
            .entry_bytes = options.entry_bytes,
            .record =
                queues::placed({"completion_queue", "record", record_bytes, record_alignment}, options.record, device),
            .overrun = options.overrun,
            .event = std::move(event)};
}

} // namespace

completion_queue::state::state(const port& port, const device& device, const completion_queue_options& wanted)
    : nic(detail::internals::share(port)), where(device), entries(wanted.entries), descriptor(descriptor_for(wanted)),
      memory(memory_of(device, wanted, counted(event_of(wanted, descriptor), told))),
      control_memory(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device, queues::small_alignment)),
      handle_memory(device.allocate(sizeof(weftio_dev_completion_queue), memory_kind::device, queues::small_alignment)),
      queue(nic->make_completion_queue(memory))
{
    const weftio_dev_completion_queue made = make_handle();
    handle_memory.upload(&made, sizeof made);
}

weftio_dev_completion_queue completion_queue::state::make_handle() const
{
    const nic::inline_turn turn = queue->turn();
    weftio_dev_completion_queue made{};
    made.abi = WEFTIO_DEV_ABI_COMPLETION_QUEUE;
    made.mask = entries - 1;
    made.entries = memory.entries.behind(memory.entry_bytes - sizeof(weftio_cqe)).device<std::uint8_t>();
    made.log_depth = static_cast<std::uint32_t>(std::countr_zero(entries));
    made.log_stride = static_cast<std::uint32_t>(std::countr_zero(memory.entry_bytes));
    made.record = memory.record.device<std::uint32_t>();
    made.control = static_cast<weftio_dev_control*>(control_memory.device_address());
    made.clock = where.clock();
    made.turn = reinterpret_cast<std::uint64_t>(turn.turn);
    made.turn_context = reinterpret_cast<std::uint64_t>(turn.context);
    made.number = queue->number();
    return made;
}

completion_queue::completion_queue(const port& port, const device& device, completion_queue_options options)
{
    check(options);
    state_ = core::make_shared_here<state>(port, device, options);
}

completion_queue::completion_queue(completion_queue&&) noexcept = default;
completion_queue& completion_queue::operator=(completion_queue&&) noexcept = default;
completion_queue::~completion_queue() = default;

weftio_dev_completion_queue* completion_queue::handle() const noexcept
{
    return static_cast<weftio_dev_completion_queue*>(state_->handle_memory.device_address());
}

weftio_dev_control* completion_queue::control() const noexcept
{
    return state_->control();
}

std::uint32_t completion_queue::number() const noexcept
{
    return state_->queue->number();
}

std::uint32_t completion_queue::entries() const noexcept
{
    return state_->entries;
}

void* completion_queue::ring() const noexcept
{
    return state_->memory.entries.device<void>();
}

void* completion_queue::record() const noexcept
{
    return state_->memory.record.device<void>();
}

std::size_t completion_queue::poll(std::span<completion> into)
{
    const nic::inline_turn turn = state_->queue->turn();
    weftio_dev_nic_turn(reinterpret_cast<std::uint64_t>(turn.turn), reinterpret_cast<std::uint64_t>(turn.context));
    std::size_t count = 0;
    for (; count != into.size(); ++count, ++state_->polled) {
        const weftio_cqe& next = state_->at(state_->polled);
        // Acquire, pairs with the NIC's release: the rest of the completion is there.
        const std::uint32_t publication = weftio_load_acquire_sys_u32(&next.publication);
        if (!weftio_cqe_is_published(publication, state_->polled / state_->entries))
            break;
        into[count] = read(next, publication);
    }
    if (count != 0) // release: the completions have been read
        weftio_store_release_sys_u32(state_->memory.record.cpu<std::uint32_t>(),
                                     weftio_swap32(state_->polled & index_mask));
    return count;
}

/// The sequence number has two bits. It is one for all calls until the event comes: any other could be that of the last
/// event again.
void completion_queue::arm(bool solicited_only)
{
    const std::uint32_t word =
        ((*state_->told + 1) & 3) << 28 | (solicited_only ? solicited_command : 0) | (state_->polled & index_mask);
    weftio_store_release_sys_u32(state_->memory.record.cpu<std::uint32_t>() + 1, weftio_swap32(word));
}

/// Copies what was not consumed while later completions may come behind it.
void completion_queue::state::move_to(const nic::completion_memory& next)
{
    const nic::ring_end old = queue->resize(next);
    for (std::uint32_t index = old.first; index != old.end; ++index) {
        const weftio_cqe& from = at(index);
        weftio_cqe& to = entry_of(next, index + 1);
        std::memcpy(&to, &from, offsetof(weftio_cqe, publication));
        const std::uint32_t publication = weftio_load_relaxed_u32(&from.publication);
        const std::uint32_t owner = ((index + 1) / next.depth & 1) << 24;
        weftio_store_release_sys_u32(&to.publication, (publication & ~owner_bit) | owner);
    }
    memory = next;
    entries = next.depth;
    polled = old.first + 1;
    weftio_dev_completion_queue made = make_handle();
    made.polled = made.consumed = polled;
    handle_memory.upload(&made, sizeof made);
}

void completion_queue::resize(std::uint32_t entries, std::uint32_t entry_bytes, memory_place ring)
{
    check({.entries = entries, .entry_bytes = entry_bytes});
    nic::completion_memory next = state_->memory;
    next.entries = entries_in(state_->where, entries, entry_bytes, ring);
    next.depth = entries;
    next.entry_bytes = entry_bytes;
    state_->move_to(next);
}

int completion_queue::descriptor() const noexcept
{
    return state_->descriptor ? state_->descriptor->descriptor() : -1;
}

bool completion_queue::overrun() const noexcept
{
    return state_->queue->overrun();
}

std::shared_ptr<devices::lifeline> detail::internals::line(const completion_queue& queue) noexcept
{
    return queue.state_;
}

const std::shared_ptr<nic::completion_queue>& detail::internals::share(const completion_queue& queue) noexcept
{
    return queue.state_->queue;
}

} // namespace weftio
