// The headers that the packets of one path have in common: written once, and copied for each packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/icrc.hpp"
#include "net/roce_headers.hpp"

namespace weftio::net {

/// Ethernet, IP and UDP headers of a path. Those of the length that was built last are kept, with the IPv4 checksum and
/// the begin of the ICRC: a packet of the same length costs a copy. One thread at a time; never blocks.
class roce_front {
 public:
    explicit roce_front(const roce_path& path) noexcept;

    /// Writes all headers of a packet: see build_roce().
    std::size_t build(std::span<std::uint8_t> to, const roce_headers& headers, std::size_t payload_bytes) noexcept;
    /// Where the BTH of a packet begins: behind Ethernet, IP and UDP.
    std::size_t bth_offset() const noexcept { return bytes_; }
    /// Begins the ICRC of the packet that was built last. @param from_bth  its BTH, and what of it follows in one piece
    icrc begin_icrc(std::span<const std::uint8_t> from_bth) const noexcept { return {sum_, from_bth}; }

 private:
    void set_length(std::size_t udp_length) noexcept;

    static constexpr std::size_t most_bytes = 14 + most_roce_tags * 4 + 40 + 8;

    std::array<std::uint8_t, most_bytes> front_{};
    std::uint8_t bytes_ = 0, ip_at_ = 0; ///< 0 bytes: no packet has so many tags
    std::uint16_t udp_length_ = 0;
    std::uint32_t sum_ = 0; ///< register of the ICRC behind the UDP header
};

} // namespace weftio::net
