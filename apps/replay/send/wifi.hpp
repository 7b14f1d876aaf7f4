// Data frames of IEEE 802.11.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "send/link_type.hpp"

namespace weftio::replay {

/// What an Ethernet frame is made of.
struct ethernet_parts {
    std::array<std::uint8_t, 6> destination{0x02, 0, 0, 0, 0, 2}, source{0x02, 0, 0, 0, 0, 1};
    std::uint16_t type = 0; ///< 0: `payload` starts with an LLC header
    std::span<const std::byte> payload;
};
using parts_or = std::variant<ethernet_parts, not_convertible>;

/// A data frame without its FCS. Anything but unencrypted data that is whole is `not_convertible::link_type`.
parts_or from_802_11(std::span<const std::byte> bytes);
/// The same behind a radiotap header, which says whether an FCS follows.
/// @param whole  the capture has the frame to its end, FCS included
parts_or from_radiotap(std::span<const std::byte> bytes, bool whole);

} // namespace weftio::replay
