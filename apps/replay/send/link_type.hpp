// Ethernet frames made of captures from other kinds of link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/capture.hpp"

namespace weftio::replay {

/// Numbers of https://www.tcpdump.org/linktypes.html.
enum class link_type : std::uint32_t {
    bsd_loopback = 0, ///< address family in the byte order of the machine that captured
    ethernet = 1,
    raw_bsd = 12, ///< raw IP, as some systems wrote it
    raw_openbsd = 14,
    raw = 101,
    ieee_802_11 = 105,
    openbsd_loopback = 108, ///< address family in network byte order
    linux_cooked = 113,
    radiotap = 127, ///< 802.11 behind a radiotap header
    ipv4 = 228,
    ipv6 = 229,
    linux_cooked_2 = 276,
};

/// What a frame is that no Ethernet frame can be made of.
enum class not_convertible {
    link_type, ///< of another kind of link, or no data (802.11 management, encrypted or fragmented data, netlink)
    runt,      ///< shorter than its headers
};

/// Makes Ethernet frames. One thread at a time.
///
/// Addresses that the link does not know are 02:00:00:00:00:01 (source) and 02:00:00:00:00:02 (destination), or follow
/// from an IP destination that is multicast or broadcast.
class ethernet_maker {
 public:
    /// Turns `captured` into an Ethernet frame; its bytes are valid until the next call. Ethernet stays as it is.
    /// @return why it could not, nothing when it could
    std::optional<not_convertible> convert(frame& captured);
    std::uint64_t converted() const noexcept { return converted_; }

 private:
    std::vector<std::byte> room_;
    std::uint64_t converted_ = 0;
};

} // namespace weftio::replay
