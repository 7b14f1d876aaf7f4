// Questions for the MAC of an address, and answers: ARP (RFC 826) and IPv6 neighbor discovery (RFC 4861).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/packet_headers.hpp"
#include "net/roce_headers.hpp"

namespace weftio::net {

using mac_address = std::array<std::uint8_t, 6>;

/// The most that build_question() and build_answer() write: Ethernet, two tags, IPv6, ICMPv6 with one option.
inline constexpr std::size_t most_neighbor_bytes = 14 + most_roce_tags * 4 + 40 + 32;

/// Whether it is a multicast group.
bool is_group(const roce_gid& address) noexcept;
/// The MAC of a multicast group (RFC 1112, 6.4; RFC 2464, 7). @pre is_group()
mac_address mac_of_group(const roce_gid& group) noexcept;

/// A question ("who has `target`?") or an answer ("`target` is at `mac`").
struct neighbor_message {
    bool asks = false;
    mac_address mac{};    ///< of who asks, or of the target
    roce_gid source{};    ///< who asks; all zero: somebody who is about to take the address himself. Answers: `target`
    roce_gid target{};    ///< whose MAC is asked for, or told
    roce_gid addressee{}; ///< whom an answer is for; all zero: everybody
};

/// The Ethernet side of a message that is built.
struct neighbor_frame {
    mac_address source_mac{};
    std::array<vlan_tag, most_roce_tags> tags{}; ///< the outermost first
    std::uint8_t tag_count = 0;
};

/// Reads a frame. Any thread; never blocks; reads nothing beyond the frame, whatever it holds.
///
/// Refused is what RFC 826 and RFC 4861 (7.1) have a host discard: wrong sizes, hop limits below 255, wrong checksums,
/// targets that are multicast, options of no length; and MACs that no single host can have.
///
/// @param frame    the whole frame in one piece
/// @param headers  result of parse() for these bytes
/// @return false: the frame is no such message, or one to discard
bool parse_neighbor(std::span<const std::uint8_t> frame, const packet_headers& headers,
                    neighbor_message& message) noexcept;

/// Writes the question for the MAC of `target`, to everybody (IPv4) or to those whose address ends alike (IPv6).
/// @pre `source` and `target` are of one kind; `to` has room for most_neighbor_bytes
/// @return bytes written
std::size_t build_question(std::span<std::uint8_t> to, const neighbor_frame& path, const roce_gid& source,
                           const roce_gid& target) noexcept;

/// Writes the answer to a question for the MAC of `question.target`: that it is `path.source_mac`.
/// @pre question.asks; `to` has room for most_neighbor_bytes
/// @return bytes written
std::size_t build_answer(std::span<std::uint8_t> to, const neighbor_frame& path,
                         const neighbor_message& question) noexcept;

} // namespace weftio::net
