// Mbuf headers for frames that lie in memory of a kernel: sending without copying.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/entry.hpp"

namespace weftio::nic {

/// What the engine remembers of an entry until it completes. Four bytes that are compared as one word.
struct alignas(4) sent_entry {
    std::uint8_t blocks = 1;
    bool event = false; ///< the host wants to be told
    bool frame = false; ///< a frame, not a wait
    refusal reason = refusal::none;

    bool operator==(const sent_entry& other) const noexcept
    {
        return std::bit_cast<std::uint32_t>(*this) == std::bit_cast<std::uint32_t>(other);
    }
};
/// Nearly all are.
inline constexpr sent_entry plain_frame{.blocks = 1, .event = false, .frame = true, .reason = refusal::none};

/// One header a slot of a send ring. A driver that is done with the mbuf frees it to the pool below, and that is the
/// completion: it sets `returned`. From any thread.
struct alignas(64) send_header {
    static constexpr std::size_t bounce_bytes = 128;

    rte_mbuf mbuf;
    std::atomic<std::uint8_t> returned{0};
    sent_entry entry; ///< that uses the slot
    std::uint32_t bytes = 0;
    std::array<std::byte, bounce_bytes> bounce{}; ///< bytes that came inside the entry, and padding
};

/// A mempool without objects of its own: whatever is put into it is a send_header. Must outlive the port's device, whose driver
/// may hold mbufs to its end.
class send_pool {
 public:
    send_pool() = default;
    send_pool(const send_pool&) = delete;
    send_pool& operator=(const send_pool&) = delete;
    ~send_pool();

    /// Headers for a ring of `depth` slots. Throws weftio::error errc::out_of_memory.
    std::unique_ptr<send_header[]> make(std::uint32_t depth);
    /// A queue has ended: takes headers that the driver still holds, or lets them go. Needs no memory.
    void take(std::unique_ptr<send_header[]> headers, bool driver_holds_some) noexcept;

 private:
    rte_mempool* pool_ = nullptr;                      ///< made with the first headers
    std::vector<std::unique_ptr<send_header[]>> kept_; ///< has room for those of every queue there is
    std::size_t queues_ = 0;
};

} // namespace weftio::nic
