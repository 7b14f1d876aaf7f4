// The ring in which net_af_packet leaves frames for Linux to send, which DPDK does not show.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dpdk/kernel_interface.hpp"
#include "dpdk/packet_sockets.hpp"

namespace weftio::nic {

/// Has Linux send what lies in it.
///
/// - Ownership: the socket and its ring are the driver's; they and `interface` must outlive the last send().
/// - Threads: one sends.
class packet_ring {
 public:
    packet_ring(const packet_socket& socket, std::uint32_t frame_bytes, const kernel_interface& interface) noexcept;

    /// Linux ends a sendto() at the first frame that it drops, net_af_packet calls it once for a burst and reports all
    /// of the burst as sent: the others would lie there until the next burst. A frame that the interface refuses,
    /// because the peer of a veth takes less, Linux would even try again for ever, and send none behind it: it is taken
    /// out, and counts in the interface's tx_dropped.
    /// @param frames  that were put into the ring last
    /// @param why     errno behind the driver's own sendto(), 0 if that went well
    void send(unsigned frames, int why) noexcept;
    /// How often the interface has counted a frame as dropped that Linux was then asked to send again. Any thread.
    std::uint64_t tried_again() const noexcept { return tried_again_.load(std::memory_order_relaxed); }

 private:
    int kick() const noexcept;
    bool drops_have_grown() noexcept;
    bool is_to_be_sent(std::size_t frame) const noexcept;
    void take_out_first() noexcept;

    int socket_;
    const kernel_interface& interface_;
    std::byte* begin_ = nullptr; ///< nullptr: not found
    std::size_t frame_bytes_, frames_ = 0;
    std::size_t first_ = 0; ///< that was to be sent when it was last looked for
    std::uint64_t drops_seen_ = 0;
    std::atomic<std::uint64_t> tried_again_{0};
};

} // namespace weftio::nic
