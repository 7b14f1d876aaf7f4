// Items that pass from kernel to kernel, or between a kernel and the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weftio/device.hpp"
#include "weftio/device/semaphore.h"

namespace weftio {

enum class semaphore_status : std::uint32_t {
    free = WEFTIO_DEV_SEMAPHORE_FREE,   ///< the producer's
    ready = WEFTIO_DEV_SEMAPHORE_READY, ///< the consumer's
    hold = WEFTIO_DEV_SEMAPHORE_HOLD,   ///< being filled or worked on
    done = WEFTIO_DEV_SEMAPHORE_DONE,
    error = WEFTIO_DEV_SEMAPHORE_ERROR,
};
const char* to_string(semaphore_status status) noexcept;

/// Whether transitions are checked unless an option says otherwise: in the application's debug builds.
#ifdef NDEBUG
#define WEFTIO_DEBUG_BUILD false
#else
#define WEFTIO_DEBUG_BUILD true
#endif

struct semaphore_options {
    std::uint32_t items = 1024;                 ///< a power of two in 1..2^20
    memory_kind kind = memory_kind::cpu_device; ///< of status and packet info, 16 bytes an item
    std::uint32_t custom_info_bytes = 0;        ///< of each item, 0..2^20; an item's starts on a cache line
    memory_kind custom_info_kind = memory_kind::cpu_device;
    std::optional<bool> cpu_access{}; ///< left out: what the kinds allow
    bool check_transitions = WEFTIO_DEBUG_BUILD;
};

/// What an item says of packets in a queue.
struct packet_info {
    std::uint32_t count = 0;
    std::uint32_t first = 0; ///< index in the queue
};

/// A change of status that the rules of weftio/device/semaphore.h do not have.
struct semaphore_transition {
    std::uint32_t index = 0;
    semaphore_status from{};
    semaphore_status to{};
};

/// What the check of transitions has found, on every side.
struct semaphore_illegal {
    std::uint32_t count = 0;
    std::optional<semaphore_transition> first{}; ///< empty too while a kernel is just writing it down
};

/// Items with a status, packet info and custom info, which kernels and the CPU hand to each other.
///
/// - Ownership: move-only; keeps its `device` alive.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle. The
///   accessors may be called by any thread at any time; the caller owns the items it changes, as in a kernel. One
///   thread runs for_each_ready.
/// - Errors: accessors throw `errc::not_reachable` when the CPU cannot see what they are for, or was denied it. They
///   neither block nor throw anything else.
/// - Illegal transitions, where they are checked, are refused and counted; the destructor logs a warning that names the
///   first.
class semaphore {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `items` is not a power of two in 1..2^20, or `custom_info_bytes` is above 2^20
    ///     - `errc::not_reachable`    `cpu_access` is true and a kind is memory_kind::device, which only kernels see
    ///     - `errc::not_supported`    the device has no memory of that kind
    ///     - `errc::out_of_memory`
    explicit semaphore(const device& device, semaphore_options options = {});
    semaphore(semaphore&&) noexcept;
    semaphore& operator=(semaphore&&) noexcept;
    ~semaphore();

    /// What a kernel is given; pass the semaphore itself to device::launch, or this where it shall not be stopped
    /// through it.
    weftio_dev_semaphore* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    /// For device::launch: what a kernel holds of the semaphore.
    std::shared_ptr<detail::lifeline> line() const noexcept;
    std::uint32_t items() const noexcept;

    semaphore_status get_status(std::uint32_t index) const;
    /// Returns what weftio_dev_semaphore_set_status returns.
    weftio_dev_status set_status(std::uint32_t index, semaphore_status status);
    /// Packet info of item `index`, nothing when its status is not `status`.
    std::optional<packet_info> get_packet_info(std::uint32_t index,
                                               semaphore_status status = semaphore_status::ready) const;
    /// Returns what weftio_dev_semaphore_set_packet_info returns.
    weftio_dev_status set_packet_info(std::uint32_t index, semaphore_status status, packet_info info);
    /// Custom info of item `index`; nullptr when items have none.
    void* get_custom_info(std::uint32_t index) const;

    /// Calls `visit(index, count, first, custom_info)` for each item that is READY, in order, from the oldest that has
    /// not been visited on; sets it FREE afterwards. Stops at the first that is not READY, or once round the semaphore.
    ///
    /// `custom_info` is a `void*`: nullptr where items have none, or one that the CPU cannot see. An item whose visit
    /// throws stays READY and comes again.
    /// @return how many were visited
    template <class Visitor>
    std::uint32_t for_each_ready(Visitor&& visit);

    /// All zero where transitions are not checked.
    semaphore_illegal illegal_transitions() const noexcept;
    /// Starts again with fresh memory: every item FREE, indices from 0, no illegal transition seen, a handle of its
    /// own. Custom info stays. A kernel that still runs keeps the old memory. Allocating memory of kind `device` may
    /// wait for kernels that run on the device.
    /// @throws weftio::error errc::out_of_memory; the semaphore is then unchanged
    void reset();

 private:
    struct state;

    /// The semaphore as the CPU addresses it. Throws where it may not.
    const weftio_dev_semaphore& view() const;
    std::uint32_t& oldest() noexcept;

    std::shared_ptr<state> state_;
};

template <class Visitor>
std::uint32_t semaphore::for_each_ready(Visitor&& visit)
{
    const weftio_dev_semaphore& items = view();
    std::uint32_t& index = oldest();
    std::uint32_t visited = 0, count = 0, first = 0;

    for (; visited <= items.mask; ++visited, ++index) {
        if (weftio_dev_semaphore_get_packet_info_status(&items, index, WEFTIO_DEV_SEMAPHORE_READY, &count, &first) !=
            WEFTIO_DEV_OK)
            break;
        visit(index, count, first, weftio_dev_semaphore_get_custom_info_addr(&items, index));
        weftio_dev_semaphore_set_status(&items, index, WEFTIO_DEV_SEMAPHORE_FREE);
    }
    return visited;
}

} // namespace weftio
