// Items that kernels and the CPU hand to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/semaphore.h"

namespace weftio {

enum class semaphore_status : std::uint32_t {
    free = WEFTIO_DEV_SEMAPHORE_FREE,   ///< owned by the producer
    ready = WEFTIO_DEV_SEMAPHORE_READY, ///< owned by the consumer
    hold = WEFTIO_DEV_SEMAPHORE_HOLD,   ///< being filled or processed
    done = WEFTIO_DEV_SEMAPHORE_DONE,
    error = WEFTIO_DEV_SEMAPHORE_ERROR,
};
const char* to_string(semaphore_status status) noexcept;

/// The default of check_transitions: true in the application's debug builds.
#ifdef NDEBUG
#define WEFTIO_DEBUG_BUILD false
#else
#define WEFTIO_DEBUG_BUILD true
#endif

struct semaphore_options {
    /// 1..2^20. Indices run freely and wrap at 2^32. If `items` is no power of two, increment indices by
    /// weftio_dev_semaphore_next(), which wraps at the end of a round.
    std::uint32_t items = 1024;
    memory_kind kind = memory_kind::cpu_device; ///< memory of status and packet info, 16 bytes for each item
    std::uint32_t custom_info_bytes = 0;        ///< custom info of each item, 0..2^20 bytes; it begins on a cache line
    memory_kind custom_info_kind = memory_kind::cpu_device;
    std::optional<bool> cpu_access{}; ///< empty: if the memory kinds allow it
    bool check_transitions = WEFTIO_DEBUG_BUILD;
    /// A second device of the same kind: items pass between its kernels, which get peer(), and kernels of the first
    /// device. Either device has a copy of status and packet info in its memory of kind `kind`, to which the other one
    /// writes; custom info lies on the first device. Between two GPUs, memory_kind::device is the fastest.
    std::optional<device> peer{};
};

/// Packets in a queue, as an item describes them.
struct packet_info {
    std::uint32_t count = 0;
    std::uint32_t first = 0; ///< index in the queue
};

/// A status change that the rules of weftio/device/semaphore.h forbid.
struct semaphore_transition {
    std::uint32_t index = 0;
    semaphore_status from{};
    semaphore_status to{};
};

/// Illegal transitions by kernels and the CPU.
struct semaphore_illegal {
    std::uint32_t count = 0;
    std::optional<semaphore_transition> first{}; ///< also empty while a kernel is writing it
};

/// Items with a status, packet info and custom info, which kernels and the CPU hand to each other.
///
/// - Ownership: move-only; keeps its `device` alive.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle. The
///   accessors may be called by any thread at any time; the caller owns the items it changes, as in a kernel. One
///   thread runs for_each_ready.
/// - Errors: accessors throw `errc::not_reachable` if the CPU cannot access what they need, or access was switched off,
///   and `errc::closed` if the semaphore was moved from, of which items() is 0. They neither block nor throw anything
///   else.
/// - Illegal transitions are refused and counted if they are checked; the destructor logs a warning that names the
///   first.
class semaphore {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `items` is not in 1..2^20, or `custom_info_bytes` is above 2^20
    ///     - `errc::not_reachable`    `cpu_access` is true and a kind is memory_kind::device, which only kernels
    ///       access; or kernels of one device cannot access such memory of the other
    ///     - `errc::not_supported`    the device has no memory of that kind
    ///     - `errc::out_of_memory`
    explicit semaphore(const device& device, semaphore_options options = {});
    semaphore(semaphore&&) noexcept;
    semaphore& operator=(semaphore&&) noexcept;
    ~semaphore();

    /// The argument for a kernel. Pass the semaphore itself to device::launch, or this pointer if stop() shall not
    /// affect the semaphore.
    weftio_dev_semaphore* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t items() const noexcept;
    /// The same items for kernels of the second device: the argument for their launch. Lives as long as the semaphore,
    /// also across reset(), and reports its own illegal transitions.
    /// @throws weftio::error errc::invalid_argument the semaphore has one device, or this is the peer already
    semaphore& peer() const;

    semaphore_status get_status(std::uint32_t index) const;
    /// Returns what weftio_dev_semaphore_set_status returns.
    weftio_dev_status set_status(std::uint32_t index, semaphore_status status);
    /// Packet info of item `index`; nothing if its status is not `status`.
    std::optional<packet_info> get_packet_info(std::uint32_t index,
                                               semaphore_status status = semaphore_status::ready) const;
    /// Returns what weftio_dev_semaphore_set_packet_info returns.
    weftio_dev_status set_packet_info(std::uint32_t index, semaphore_status status, packet_info info);
    /// Custom info of item `index`; nullptr if items have none.
    void* get_custom_info(std::uint32_t index) const;

    /// Calls `visit(index, count, first, custom_info)` for each READY item in order, starting with the oldest item that
    /// has not been visited, and sets the item FREE afterwards. Stops at the first item that is not READY, or after one
    /// round of the semaphore.
    ///
    /// `custom_info` is a `void*`: nullptr if items have none, or one that the CPU cannot access. An item whose visit
    /// throws stays READY and is visited again.
    /// @return number of items visited
    template <class Visitor>
    std::uint32_t for_each_ready(Visitor&& visit);

    /// All zero if transitions are not checked.
    semaphore_illegal illegal_transitions() const noexcept;
    /// Starts again with fresh memory and a new handle: every item FREE, indices from 0, no illegal transition counted.
    /// Custom info stays. A running kernel keeps the old memory. Allocating memory of kind `device`, in which the
    /// handle lies, may wait for kernels that run on the device. With a peer, both start again.
    /// @throws weftio::error errc::out_of_memory the semaphore is then unchanged; errc::invalid_argument peer() has
    ///         returned this one
    void reset();

 private:
    friend detail::internals;
    struct state;

    explicit semaphore(std::shared_ptr<state> state) noexcept;
    static std::shared_ptr<state> make(const device& device, const semaphore_options& options,
                                       std::shared_ptr<memory> custom_info);

    /// The semaphore with CPU addresses. Throws if the CPU has no access.
    const weftio_dev_semaphore& view() const;
    std::uint32_t& oldest() noexcept;

    std::shared_ptr<state> state_;
};

template <class Visitor>
std::uint32_t semaphore::for_each_ready(Visitor&& visit)
{
    const weftio_dev_semaphore items = view(); // a copy, so that stores to items do not force a reload of its fields
    std::uint32_t& from = oldest();
    std::uint32_t index = from, visited = 0, count = 0, first = 0;

    for (; visited != items.count; ++visited) {
        if (weftio_dev_semaphore_get_packet_info_status(&items, index, WEFTIO_DEV_SEMAPHORE_READY, &count, &first) !=
            WEFTIO_DEV_OK)
            break;
        visit(index, count, first, weftio_dev_semaphore_get_custom_info_addr(&items, index));
        weftio_dev_semaphore_set_status(&items, index, WEFTIO_DEV_SEMAPHORE_FREE);
        from = index = weftio_dev_semaphore_next(&items, index);
    }
    return visited;
}

} // namespace weftio
