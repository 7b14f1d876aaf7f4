#include "weftio/semaphore.hpp"

#include <array>
#include <bit>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <rte_telemetry.h>

#include "core/log.hpp"
#include "core/process.hpp"
#include "core/telemetry.hpp"
#include "devices/backend.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::uint32_t most_items = 1u << 20, most_custom_info_bytes = 1u << 20;
constexpr std::uint32_t cache_line = 64;

void check_reach(const semaphore_options& options, memory_kind kind, const char* what)
{
    if (options.cpu_access.value_or(false) && kind == memory_kind::device)
        throw error(errc::not_reachable,
                    fmt::format("weftio: semaphore: cpu_access is true, but the {} of kind \"device\", which the CPU "
                                "cannot access; use memory_kind::cpu_device or device_cpu, or leave cpu_access out",
                                what));
}

void check(const semaphore_options& options)
{
    if (options.items == 0 || options.items > most_items)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: semaphore: items is {}; set 1 to {}", options.items, most_items));
    if (options.custom_info_bytes > most_custom_info_bytes)
        throw error(errc::invalid_argument, fmt::format("weftio: semaphore: custom_info_bytes is {}; set {} at most",
                                                        options.custom_info_bytes, most_custom_info_bytes));
    check_reach(options, options.kind, "items are");
    if (options.custom_info_bytes)
        check_reach(options, options.custom_info_kind, "custom info is");
}

/// As weftio_dev_semaphore has it.
bool is_plain(const semaphore_options& options)
{
    return std::has_single_bit(options.items) && !options.peer && !options.check_transitions;
}

std::uint32_t stride_of(const semaphore_options& options)
{
    return (options.custom_info_bytes + cache_line - 1) / cache_line * cache_line;
}

/// Has kernels of both devices access what they share.
void connect(devices::device_backend& device, devices::device_backend& peer, const semaphore_options& options)
{
    device.reach(peer, options.kind, "semaphore");
    peer.reach(device, options.kind, "semaphore");
    if (options.custom_info_bytes)
        peer.reach(device, options.custom_info_kind, "semaphore");
}

std::shared_ptr<memory> allocate(const device& device, std::size_t bytes, memory_kind kind)
{
    return std::make_shared<memory>(device.allocate(bytes, kind)); // zeroed, so all items are FREE
}

} // namespace

const char* to_string(semaphore_status status) noexcept
{
    switch (status) {
        case semaphore_status::free: return "FREE";
        case semaphore_status::ready: return "READY";
        case semaphore_status::hold: return "HOLD";
        case semaphore_status::done: return "DONE";
        case semaphore_status::error: return "ERROR";
    }
    return "unknown";
}

/// The memory of a semaphore between two resets; a running kernel keeps it alive.
struct semaphore::state final : devices::lifeline {
    /// The memory that both ends of a semaphore of two devices use.
    struct shared_memory {
        std::shared_ptr<memory> items, peer_items, custom_info;
    };
    state(const device& device, const semaphore_options& options, shared_memory memory);
    ~state() override;

    weftio_dev_control* control() const noexcept override { return view.control; }
    const devices::device_backend& backend() const noexcept override { return detail::internals::backend(where); }
    std::string describe() const override;
    void fill_row(rte_tel_data* dict) const;
    void quiesce() override {} // no NIC uses it, and the abort flag ends the waits

    void make_handle();
    using status_counts = std::array<std::uint32_t, WEFTIO_DEV_SEMAPHORE_ERROR + 1>;
    status_counts count_by_status() const;
    semaphore_illegal illegal_seen() const noexcept;
    void log_illegal() const;

    device where;
    semaphore_options options;
    std::uint32_t stride_bytes;
    bool cpu_access;
    memory control_line, handle, illegal;
    std::shared_ptr<memory> items, peer_items; ///< `peer_items` of the other device; empty if there is none
    std::shared_ptr<memory> custom_info;       ///< empty if items have none
    std::unique_ptr<semaphore> peer;           ///< the other end; empty if there is none, or this is that end
    weftio_dev_semaphore view{};               ///< the handle, with CPU addresses of all memory that the CPU can see
    std::uint32_t oldest = 0;
    std::optional<core::telemetry_row> row; ///< last member, destroyed first: it reads the others
};

semaphore::state::state(const device& device, const semaphore_options& wanted, shared_memory memory)
    : where(device), options(wanted), stride_bytes(stride_of(wanted)),
      cpu_access(wanted.cpu_access.value_or(wanted.kind != memory_kind::device)),
      control_line(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
      handle(device.allocate(sizeof(weftio_dev_semaphore), memory_kind::device)),
      illegal(device.allocate(sizeof(weftio_dev_semaphore_illegal), memory_kind::cpu_device)),
      items(std::move(memory.items)), peer_items(std::move(memory.peer_items)),
      custom_info(std::move(memory.custom_info))
{
    make_handle();
    row.emplace(core::telemetry_kind::semaphore, [this](rte_tel_data* dict) { fill_row(dict); });
}

void semaphore::state::make_handle()
{
    weftio_dev_semaphore made{};
    made.clock = where.clock();
    made.mask = is_plain(options) ? options.items - 1 : UINT32_MAX;
    made.count = options.items;
    made.end = static_cast<std::uint32_t>((std::uint64_t{1} << 32) / options.items * options.items);
    made.abi = WEFTIO_DEV_ABI_SEMAPHORE;
    made.custom_info_stride_bytes = stride_bytes;
    view = made;

    made.items = static_cast<weftio_dev_semaphore_item*>(items->device_address());
    made.control = static_cast<weftio_dev_control*>(control_line.device_address());
    view.items = static_cast<weftio_dev_semaphore_item*>(items->cpu_address());
    view.control = static_cast<weftio_dev_control*>(control_line.cpu_address());
    if (peer_items) {
        made.peer_items = static_cast<weftio_dev_semaphore_item*>(peer_items->device_address());
        view.peer_items = static_cast<weftio_dev_semaphore_item*>(peer_items->cpu_address());
    }
    if (custom_info) {
        made.custom_info = static_cast<std::uint8_t*>(custom_info->device_address());
        view.custom_info = static_cast<std::uint8_t*>(custom_info->cpu_address());
    }
    if (options.check_transitions) {
        made.illegal = static_cast<weftio_dev_semaphore_illegal*>(illegal.device_address());
        view.illegal = static_cast<weftio_dev_semaphore_illegal*>(illegal.cpu_address());
    }
    handle.upload(&made, sizeof made);
}

/// @pre the CPU can see the items
semaphore::state::status_counts semaphore::state::count_by_status() const
{
    status_counts counts{};
    for (std::uint32_t index = 0; index < options.items; ++index)
        if (std::uint32_t status = weftio_dev_semaphore_get_status(&view, index); status < counts.size())
            ++counts[status];
    return counts;
}

void semaphore::state::fill_row(rte_tel_data* dict) const
{
    core::put(dict, "items", options.items);
    if (view.items) {
        const status_counts counts = count_by_status();
        for (std::uint32_t status = 0; status < counts.size(); ++status)
            core::put(dict, to_string(static_cast<semaphore_status>(status)), counts[status]);
    }
    core::put(dict, "beats", weftio_load_relaxed_u32(&view.control->beats));
    core::put(dict, "illegal_transitions", illegal_seen().count);
}

/// Formats "semaphore of 64 items: 60 FREE, 3 READY, 1 HOLD, 0 DONE, 0 ERROR", without the counts if the CPU cannot see
/// the items.
std::string semaphore::state::describe() const
{
    std::string text = fmt::format("semaphore of {} items", options.items);
    if (!view.items)
        return text;
    const status_counts counts = count_by_status();
    for (std::uint32_t status = 0; status < counts.size(); ++status)
        text += fmt::format("{} {} {}", status ? "," : ":", counts[status],
                            to_string(static_cast<semaphore_status>(status)));
    return text;
}

semaphore::state::~state()
{
    try {
        log_illegal();
    } catch (...) { // an exception of the sink
    }
}

semaphore_illegal semaphore::state::illegal_seen() const noexcept
{
    const auto* record = static_cast<const weftio_dev_semaphore_illegal*>(illegal.cpu_address());
    semaphore_illegal seen{.count = weftio_load_relaxed_u32(&record->count)};

    if (weftio_load_acquire_sys_u32(&record->recorded))
        seen.first = {.index = weftio_load_relaxed_u32(&record->index),
                      .from = static_cast<semaphore_status>(weftio_load_relaxed_u32(&record->from)),
                      .to = static_cast<semaphore_status>(weftio_load_relaxed_u32(&record->to))};
    return seen;
}

void semaphore::state::log_illegal() const
{
    const semaphore_illegal seen = illegal_seen();
    if (seen.count == 0)
        return;
    std::string first;
    if (seen.first)
        first = fmt::format(", the first of item {} from {} to {}", seen.first->index, to_string(seen.first->from),
                            to_string(seen.first->to));
    core::log(
        log_level::warning,
        fmt::format(
            "weftio: semaphore: {} illegal transition{} refused{}; see weftio/device/semaphore.h for the legal ones",
            seen.count, seen.count == 1 ? "" : "s", first));
}

semaphore::semaphore(const device& device, semaphore_options options)
{
    check(options);
    if (options.peer)
        connect(detail::internals::backend(device), detail::internals::backend(*options.peer), options);
    std::shared_ptr<memory> custom_info;
    if (options.custom_info_bytes)
        custom_info = allocate(device, std::size_t{options.items} * stride_of(options), options.custom_info_kind);
    state_ = make(device, options, std::move(custom_info));
}

semaphore::semaphore(std::shared_ptr<state> state) noexcept : state_(std::move(state)) {}

std::shared_ptr<semaphore::state> semaphore::make(const device& device, const semaphore_options& options,
                                                  std::shared_ptr<memory> custom_info)
{
    const std::size_t bytes = std::size_t{options.items} * sizeof(weftio_dev_semaphore_item);
    state::shared_memory memory{allocate(device, bytes, options.kind), {}, std::move(custom_info)};
    if (!options.peer)
        return core::make_shared_here<state>(device, options, memory);
    memory.peer_items = allocate(*options.peer, bytes, options.kind);
    auto made = core::make_shared_here<state>(device, options, memory);
    std::swap(memory.items, memory.peer_items);
    made->peer.reset(new semaphore(core::make_shared_here<state>(*options.peer, options, memory)));
    return made;
}

semaphore::semaphore(semaphore&&) noexcept = default;
semaphore& semaphore::operator=(semaphore&&) noexcept = default;
semaphore::~semaphore() = default;

weftio_dev_semaphore* semaphore::handle() const noexcept
{
    return state_ ? static_cast<weftio_dev_semaphore*>(state_->handle.device_address()) : nullptr;
}

weftio_dev_control* semaphore::control() const noexcept
{
    return state_ ? state_->control() : nullptr;
}

std::shared_ptr<devices::lifeline> detail::internals::line(const semaphore& semaphore) noexcept
{
    return semaphore.state_;
}

std::uint32_t semaphore::items() const noexcept
{
    return state_ ? state_->options.items : 0;
}

namespace {

void require_state(const void* state)
{
    if (!state)
        throw error(errc::closed, "weftio: semaphore: it was moved from; use the object that it was moved to");
}

} // namespace

semaphore& semaphore::peer() const
{
    require_state(state_.get());
    if (!state_->peer)
        throw error(
            errc::invalid_argument,
            state_->peer_items
                ? "weftio: semaphore: peer() is called on what peer() has returned; the semaphore itself is for "
                  "kernels of the first device"
                : "weftio: semaphore: peer() is called, but the semaphore has one device; name the second one "
                  "in semaphore_options::peer");
    return *state_->peer;
}

const weftio_dev_semaphore& semaphore::view() const
{
    require_state(state_.get());
    if (!state_->cpu_access)
        throw error(
            errc::not_reachable,
            state_->options.kind == memory_kind::device
                ? "weftio: semaphore: its items are of kind \"device\", which the CPU cannot access; create it with "
                  "kind cpu_device or device_cpu"
                : "weftio: semaphore: it was created with cpu_access = false; leave that out to use it from the CPU");
    return state_->view;
}

std::uint32_t& semaphore::oldest() noexcept
{
    return state_->oldest;
}

semaphore_status semaphore::get_status(std::uint32_t index) const
{
    return static_cast<semaphore_status>(weftio_dev_semaphore_get_status(&view(), index));
}

weftio_dev_status semaphore::set_status(std::uint32_t index, semaphore_status status)
{
    return static_cast<weftio_dev_status>(
        weftio_dev_semaphore_set_status(&view(), index, static_cast<std::uint32_t>(status)));
}

std::optional<packet_info> semaphore::get_packet_info(std::uint32_t index, semaphore_status status) const
{
    packet_info info;
    auto wanted = static_cast<std::uint32_t>(status);
    if (weftio_dev_semaphore_get_packet_info_status(&view(), index, wanted, &info.count, &info.first) != WEFTIO_DEV_OK)
        return {};
    return info;
}

weftio_dev_status semaphore::set_packet_info(std::uint32_t index, semaphore_status status, packet_info info)
{
    auto wanted = static_cast<std::uint32_t>(status);
    return static_cast<weftio_dev_status>(
        weftio_dev_semaphore_set_packet_info(&view(), index, wanted, info.count, info.first));
}

void* semaphore::get_custom_info(std::uint32_t index) const
{
    const weftio_dev_semaphore& items = view();
    if (state_->custom_info && !items.custom_info)
        throw error(errc::not_reachable, "weftio: semaphore: its custom info is of kind \"device\", which the CPU "
                                         "cannot access; create it with custom_info_kind cpu_device or device_cpu");
    return weftio_dev_semaphore_get_custom_info_addr(&items, index);
}

semaphore_illegal semaphore::illegal_transitions() const noexcept
{
    return state_ ? state_->illegal_seen() : semaphore_illegal{};
}

void semaphore::reset()
{
    require_state(state_.get());
    if (state_->peer_items && !state_->peer)
        throw error(errc::invalid_argument,
                    "weftio: semaphore: reset() is called on what peer() has returned; reset the "
                    "semaphore itself, which begins both anew");
    std::shared_ptr<state> made = make(state_->where, state_->options, state_->custom_info);
    if (made->peer) {
        std::swap(state_->peer->state_, made->peer->state_); // peer() stays the same object
        std::swap(state_->peer, made->peer);
    }
    state_ = std::move(made);
}

} // namespace weftio
