// Who holds the XDP hook of an interface: nobody, this port, or another program.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "dpdk/link_messages.hpp"

namespace weftio::dpdk {

/// The XDP hook of an interface in the network namespace of the constructing thread. The AF_XDP driver attaches its
/// program there. This class prevents it from taking the place of another program (a firewall, a load balancer), at
/// open and at close, and detects that the driver's program is detached or replaced.
///
/// - Threads: trouble() any; the others one at a time.
class xdp_hook {
 public:
    /// @param all_queues  how many receive queues the interface may have, since the port receives from all of them; a
    ///                    program of libxdp's that was there before then serves nobody else. 0: the port has queues
    ///                    that its user has chosen
    /// Throws weftio::error errc::device_error without the sockets on which Linux is asked: the program could not be
    /// detached.
    xdp_hook(const std::string& interface, unsigned all_queues);
    xdp_hook(const xdp_hook&) = delete;
    xdp_hook& operator=(const xdp_hook&) = delete;
    ~xdp_hook();

    /// Throws weftio::error errc::in_use if a program is attached, in any way. libxdp's program for AF_XDP sockets is
    /// accepted: libxdp shares it, and without sockets it passes everything on to Linux (a killed program leaves it).
    void require_free(std::string_view spec);
    /// Call it when the driver has attached its program: the program that is attached now is ours.
    void adopt() noexcept;
    /// Why packets of the interface no longer reach the port: our program has been detached or replaced, or the
    /// interface has more receive queues. nullptr: they reach it; also before adopt(). Takes no lock of the kernel's
    /// network settings, unless Linux has lost notifications.
    const char* trouble() noexcept;
    /// Detaches our program, unless another one has taken its place, and has the driver close. DPDK's close detaches
    /// whatever is attached then, so it runs without the right to do so (CAP_NET_ADMIN).
    void let_go(const std::function<void()>& close_driver) noexcept;

 private:
    bool is_lost() noexcept;
    /// libxdp's dispatcher has files in /sys/fs/bpf, which only libxdp can remove: libxdp detaches it.
    bool is_for_libxdp_to_detach() const noexcept;

    std::string interface_;
    int index_;
    unsigned all_queues_;
    channel_news channels_;
    std::mutex asking_; ///< for requests_ in is_lost()
    link_socket requests_{link_socket::use::requests}, notifications_{link_socket::use::notifications};
    link_report before_;        ///< at require_free()
    std::uint32_t program_ = 0; ///< id of ours; 0: none
    xdp_place place_ = xdp_place::driver;
    int descriptor_ = -1; ///< of our program; -1: the program is not ours to detach
    std::atomic<bool> lost_{false}, has_more_queues_{false};
};

} // namespace weftio::dpdk
