// Converts data frames of IEEE 802.11.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "send/link_type.hpp"

namespace weftio::replay {

/// The parts of an Ethernet frame.
struct ethernet_parts {
    std::array<std::uint8_t, 6> destination{0x02, 0, 0, 0, 0, 2}, source{0x02, 0, 0, 0, 0, 1};
    std::uint16_t type = 0; ///< 0: `payload` starts with an LLC header
    std::span<const std::byte> payload;
};
using parts_or = std::variant<ethernet_parts, not_convertible>;

/// Length of the frame check sequence of 802.11.
inline constexpr std::uint32_t fcs_802_11 = 4;

/// Converts a data frame without its FCS. Anything but complete, unencrypted data is `not_convertible::link_type`.
parts_or from_802_11(std::span<const std::byte> bytes);
/// Converts a data frame behind a radiotap header, which tells whether an FCS follows.
/// @param fcs_bytes  bytes of that FCS that are still in `bytes`
parts_or from_radiotap(std::span<const std::byte> bytes, std::uint32_t fcs_bytes);

} // namespace weftio::replay
