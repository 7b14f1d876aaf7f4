// Access to net_af_packet's send ring, which DPDK does not expose.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dpdk/kernel_interface.hpp"
#include "dpdk/packet_sockets.hpp"

namespace weftio::dpdk {

/// Makes Linux send the frames in the ring.
///
/// - Ownership: the socket and its ring are the driver's; they and `interface` must outlive the last send().
/// - Threads: one sends.
class packet_ring {
 public:
    packet_ring(const packet_socket& socket, std::uint32_t frame_bytes, const kernel_interface& interface) noexcept;

    /// Sends the rest of a burst. Linux ends a sendto() at the first frame that it drops, but net_af_packet calls it
    /// once for a burst and reports the whole burst as sent, so the frames behind would wait for the next burst. A
    /// frame that the interface refuses, because the peer of a veth takes less, would even be retried for ever and
    /// block those behind it: it is taken out of the ring, and counts in the interface's tx_dropped.
    /// @param frames  number of frames put into the ring last
    /// @param why     errno after the driver's own sendto(), 0 if it succeeded
    void send(unsigned frames, int why) noexcept;
    /// How many dropped frames the interface has counted that Linux was then asked to send again. Any thread.
    std::uint64_t tried_again() const noexcept { return tried_again_.load(std::memory_order_relaxed); }

 private:
    int kick() const noexcept;
    bool drops_have_grown() noexcept;
    bool is_to_be_sent(std::size_t frame) const noexcept;
    void take_out_first() noexcept;

    int socket_;
    const kernel_interface& interface_;
    std::byte* begin_ = nullptr; ///< start of the send ring; nullptr: not found
    std::size_t frame_bytes_, frames_ = 0;
    std::size_t first_ = 0; ///< the first frame to be sent, at the last search
    std::uint64_t drops_seen_ = 0;
    std::atomic<std::uint64_t> tried_again_{0};
};

} // namespace weftio::dpdk
