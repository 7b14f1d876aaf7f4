// Edits frames before they are sent.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reader/capture.hpp"
#include "send/link_type.hpp"

namespace weftio::replay {

struct ip_packet;
using mac_address = std::array<std::uint8_t, 6>;

/// Replaces the first `to_bits` bits of addresses in `from/from_bits` by those of `to`. IPv4 uses the first 4 bytes.
struct address_map {
    std::array<std::uint8_t, 16> from{}, to{};
    unsigned from_bits = 0, to_bits = 0;
    unsigned bytes = 4; ///< 4 or 16
};

/// Replaces TCP and UDP ports from `first` to `last` by `to`.
struct port_map {
    std::uint16_t first = 0, last = 0, to = 0;
};

/// A new TTL or hop limit: `by`, or the old one plus `by`, limited to 1 to 255.
struct ttl_change {
    int by = 0;
    bool relative = false;
};

/// Why a frame of a capture was not sent.
enum class skip_reason {
    link_type, ///< cannot be converted to an Ethernet frame
    runt,      ///< shorter than an Ethernet header
    oversize,  ///< longer than the port's MTU allows
    filter,    ///< left out by --filter
    count_
};
const char* to_string(skip_reason reason) noexcept;

struct edit_options {
    std::optional<mac_address> destination_mac{}, source_mac{};
    std::optional<std::uint16_t> vlan_push{}; ///< tag control: priority << 13 | identifier
    bool vlan_pop = false;                    ///< removes the outermost tag, before a push
    std::vector<address_map> maps{};
    std::vector<port_map> ports{};
    std::optional<ttl_change> ttl{};
    std::optional<std::uint8_t> dscp{}; ///< 0 to 63
    bool unique_ip = false;             ///< changes addresses in every pass, like tcpreplay
    bool fix_checksums = false;         ///< IPv4, TCP, UDP, ICMP, ICMPv6
    bool truncate = false;              ///< cut frames to the MTU instead of skipping them
};

/// Reads "aa:bb:cc:dd:ee:ff"; nothing when it is not.
std::optional<mac_address> parse_mac(std::string_view text);
/// Reads "10.0.0.0/8=192.168.0.0/16" or the same in IPv6; nothing when it is not.
std::optional<address_map> parse_address_map(std::string_view text);
/// Reads "10.0.0.0/8" or "10.0.0.1", of `bytes` bytes, 4 or 16. Returns false when it is not.
bool parse_prefix(std::string_view text, unsigned bytes, std::array<std::uint8_t, 16>& address, unsigned& bits);
/// Whether the first `bits` bits are the same.
bool same_prefix(const std::uint8_t* a, const std::uint8_t* b, unsigned bits);
/// Reads "80=8080" or "1000-1999=80"; nothing when it is not.
std::optional<port_map> parse_port_map(std::string_view text);
/// Reads "64", "+1" or "-1"; nothing when it is not.
std::optional<ttl_change> parse_ttl(std::string_view text);

/// Applies the options to one frame after the other. One thread at a time.
class editor {
 public:
    /// @param mtu  longest packet of the port; frames have 14 bytes more, 22 when tagged
    editor(edit_options options, std::uint32_t mtu) : options_(std::move(options)), mtu_(mtu) {}

    /// The most bytes that apply() writes.
    std::uint32_t room_bytes() const noexcept { return mtu_ + 22 < 60 ? 60 : mtu_ + 22; }
    /// Writes the frame to `to`, which has room_bytes(), padded with zeros to 60 bytes as a NIC would.
    /// @param pass  0 in the first loop, 1 in the second
    /// @param[out] bytes  written, padding included
    /// @return why the frame must not be sent; nothing if it may
    std::optional<skip_reason> apply(const frame& from, std::uint64_t pass, std::uint8_t* to, std::uint32_t& bytes);
    std::uint64_t truncated() const noexcept { return truncated_; }
    /// The MTU that the longest frame needs of those skipped as oversize; 0 if none was.
    std::uint32_t wanted_mtu() const noexcept { return wanted_mtu_; }
    /// Number of frames converted to Ethernet.
    std::uint64_t converted() const noexcept { return maker_.converted(); }

 private:
    std::optional<skip_reason> apply_to_ethernet(const frame& from, std::uint64_t pass, std::uint8_t* to,
                                                 std::uint32_t& bytes);
    std::uint32_t copy(const frame& from, std::uint8_t* to) const;
    void edit_headers(std::uint8_t* frame, std::uint32_t bytes, std::uint64_t pass) const;
    void edit_fields(const ip_packet& packet) const;

    edit_options options_;
    std::uint32_t mtu_, wanted_mtu_ = 0;
    ethernet_maker maker_;
    std::uint64_t truncated_ = 0;
};

} // namespace weftio::replay
