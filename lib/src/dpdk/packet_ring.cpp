#include "dpdk/packet_ring.hpp"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

namespace weftio::dpdk {

namespace {

struct file_closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

struct piece {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
};

/// Finds where the rings of a socket are mapped in this process.
piece mapping_of(const packet_socket& socket) noexcept
{
    char name[40], line[512];
    std::snprintf(name, sizeof name, "socket:[%" PRIu64 "]\n", socket.inode);
    std::unique_ptr<std::FILE, file_closer> maps(std::fopen("/proc/self/maps", "re"));
    while (maps && std::fgets(line, sizeof line, maps.get())) {
        std::uintptr_t begin = 0, end = 0;
        if (std::strstr(line, name) && std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2)
            return {reinterpret_cast<std::byte*>(begin), end - begin};
    }
    return {};
}

/// Whether the kernel skips malformed frames (PACKET_LOSS), as DPDK sets it.
bool skips_what_is_wrong(int socket) noexcept
{
    int skips = 0;
    socklen_t bytes = sizeof skips;
    return ::getsockopt(socket, SOL_PACKET, PACKET_LOSS, &skips, &bytes) == 0 && skips != 0;
}

} // namespace

packet_ring::packet_ring(const packet_socket& socket, std::uint32_t frame_bytes,
                         const kernel_interface& interface) noexcept
    : socket_(socket.descriptor), interface_(interface), frame_bytes_(frame_bytes)
{
    const piece both = mapping_of(socket); // the receive ring, then a send ring of the same size
    if (!skips_what_is_wrong(socket_) || both.bytes < 2 * frame_bytes_)
        return;
    begin_ = both.begin + both.bytes / 2;
    frames_ = both.bytes / 2 / frame_bytes_;
}

void packet_ring::send(unsigned frames, int why) noexcept
{
    if (why != ENOBUFS)
        why = kick();
    // Reading the interface's counter costs more than sending a frame. So it is read only after ENOBUFS, which a
    // dropped frame causes, and not while the interface is merely busy.
    bool drops = begin_ != nullptr && why == ENOBUFS;
    if (drops && drops_have_grown())
        tried_again_.fetch_add(1, std::memory_order_relaxed);
    for (unsigned left = frames + 1; left != 0 && why != 0; --left) {
        why = kick();
        if (!drops || why != ENOBUFS)
            continue;
        drops = drops_have_grown();
        if (drops)
            take_out_first();
    }
}

/// Whether the interface's tx_dropped has grown since the last call.
bool packet_ring::drops_have_grown() noexcept
{
    const std::uint64_t now = interface_.tx_dropped();
    return now != std::exchange(drops_seen_, now);
}

/// Starts sending from the ring. Returns 0 or errno.
int packet_ring::kick() const noexcept
{
    return ::sendto(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 ? errno : 0;
}

bool packet_ring::is_to_be_sent(std::size_t frame) const noexcept
{
    const auto* head = reinterpret_cast<const tpacket2_hdr*>(begin_ + frame * frame_bytes_);
    return (__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_SEND_REQUEST) != 0;
}

/// Takes the first frame to be sent out of the ring by setting its length to 0. The kernel walks the ring frame by
/// frame and skips a frame of length 0; a free frame would stop it.
void packet_ring::take_out_first() noexcept
{
    auto before = [this](std::size_t frame) { return (frame != 0 ? frame : frames_) - 1; };
    auto next = [this](std::size_t frame) { return frame + 1 != frames_ ? frame + 1 : 0; };
    std::size_t left = frames_; // in a full ring first_ stays
    while (left != 0 && (!is_to_be_sent(first_) || is_to_be_sent(before(first_)))) {
        first_ = next(first_);
        --left;
    }
    if (!is_to_be_sent(first_))
        return;
    reinterpret_cast<tpacket2_hdr*>(begin_ + first_ * frame_bytes_)->tp_len = 0;
    first_ = next(first_);
}

} // namespace weftio::dpdk
