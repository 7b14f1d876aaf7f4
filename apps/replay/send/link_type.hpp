// Converts frames of other link types to Ethernet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reader/capture.hpp"

namespace weftio::replay {

/// Numbers of https://www.tcpdump.org/linktypes.html.
enum class link_type : std::uint32_t {
    bsd_loopback = 0, ///< address family in the capturing machine's byte order
    ethernet = 1,
    raw_bsd = 12, ///< raw IP, as some systems write it
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

/// Why a frame cannot be converted to Ethernet.
enum class not_convertible {
    link_type, ///< unsupported link type, or no data (802.11 management, encrypted or fragmented data, netlink)
    runt,      ///< shorter than its headers
};

/// Converts frames to Ethernet. One thread at a time.
///
/// Addresses that the link type lacks are 02:00:00:00:00:01 (source) and 02:00:00:00:00:02 (destination), or follow
/// from a multicast or broadcast IP destination.
class ethernet_maker {
 public:
    /// Converts `captured` to an Ethernet frame, whose bytes are valid until the next call. Leaves Ethernet frames as
    /// they are.
    /// @return why the frame cannot be converted; nothing on success
    std::optional<not_convertible> convert(frame& captured);
    std::uint64_t converted() const noexcept { return converted_; }

 private:
    std::vector<std::byte> room_;
    std::uint64_t converted_ = 0;
};

} // namespace weftio::replay
