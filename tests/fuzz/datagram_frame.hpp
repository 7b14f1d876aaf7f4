// Datagrams that are right but for what the input changes, and which of them may take a receive.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "net/checksum.hpp"
#include "net/roce_headers.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

/// A queue pair of datagrams, as its peers name it.
struct datagram_target {
    std::uint32_t number = 0, queue_key = 0, path_mtu = 0;
    bool in_group = false;
};

/// The addresses of the port under test, and of a multicast group.
struct datagram_ground {
    static constexpr std::array<std::uint8_t, 6> mac{2, 0, 0, 0, 0, 1}, group_mac{1, 0, 0x5e, 0x6f, 0, 1};
    static constexpr net::roce_gid ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1},
        ipv6{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
        group{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 0, 0, 1};
    static constexpr std::uint32_t number_of_groups = 0xffffff;
};

struct datagram_frame {
    std::vector<std::uint8_t> bytes;
    bool honest = false; ///< nothing is changed
};

/// Reads a frame without the code under test: whether each condition holds under which `to` may take a receive for it.
class frame_reader {
 public:
    explicit frame_reader(std::span<const std::uint8_t> frame) : frame_(frame) { find_ip(); }

    bool may_take(const datagram_target& to) const
    {
        const std::size_t ip_bytes = ipv6_ ? 40 : 20, udp = ip_ + ip_bytes, bth = udp + 8, deth = bth + 12;
        if (!known_ || deth + 8 + 4 > frame_.size())
            return false;
        const std::size_t end = udp + half(udp + 4);
        const bool lengths = end == ip_ + ip_length() && end <= frame_.size() && end >= deth + 8 + 4;
        if (!lengths || !ip_is_plain() || half(udp + 2) != 4791)
            return false;
        const std::size_t front = deth + 8 + (frame_[bth] == 0x65 ? 4 : 0) + (frame_[bth + 1] >> 4 & 3) + 4;
        const bool form = (frame_[bth] == 0x64 || frame_[bth] == 0x65) && (frame_[bth + 1] & 0x0f) == 0;
        return form && end >= front && end - front <= to.path_mtu && (half(bth + 2) & 0x7fff) == 0x7fff &&
               word(deth) == to.queue_key && is_to(word(bth + 4) & 0xffffff, to) &&
               net::icrc_of(frame_.subspan(ip_, end - 4 - ip_)) == net::load_icrc(&frame_[end - 4]);
    }

 private:
    std::uint32_t half(std::size_t at) const { return std::uint32_t{frame_[at]} << 8 | frame_[at + 1]; }
    std::uint32_t word(std::size_t at) const { return half(at) << 16 | half(at + 2); }
    /// Whatever the VLAN is: that a datagram is in another one is not told here.
    void find_ip()
    {
        for (std::size_t at = 12; at + 2 <= frame_.size() && !known_; at += 4) {
            const std::uint32_t type = half(at);
            known_ = type == 0x0800 || type == 0x86dd;
            ipv6_ = type == 0x86dd;
            ip_ = at + 2;
            if (!known_ && type != 0x8100 && type != 0x88a8 && type != 0x9100)
                return;
        }
        known_ = known_ && ip_ + (ipv6_ ? 40 : 20) <= frame_.size();
    }
    std::size_t ip_length() const { return ipv6_ ? 40 + half(ip_ + 4) : half(ip_ + 2); }
    bool ip_is_plain() const
    {
        return ipv6_ ? frame_[ip_] >> 4 == 6 && frame_[ip_ + 6] == 17
                     : frame_[ip_] == 0x45 && frame_[ip_ + 9] == 17 && (half(ip_ + 6) & 0x3fff) == 0;
    }
    bool has(std::size_t at, std::span<const std::uint8_t> bytes) const
    {
        return std::equal(bytes.begin(), bytes.end(), frame_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    bool is_to(std::uint32_t number, const datagram_target& to) const
    {
        using ground = datagram_ground;
        const bool to_mac = (frame_[0] & 1) != 0 || has(0, ground::mac);
        const std::span<const std::uint8_t> v4(ground::ipv4), group(ground::group);
        const bool to_us = ipv6_ ? has(ip_ + 24, ground::ipv6) : has(ip_ + 16, v4.subspan(12));
        const bool to_group = !ipv6_ && has(ip_ + 16, group.subspan(12)) && to.in_group;
        return to_mac && ((to_us && number == to.number) || (to_group && number == ground::number_of_groups));
    }

    std::span<const std::uint8_t> frame_;
    bool known_ = false, ipv6_ = false;
    std::size_t ip_ = 0;
};

/// Makes one datagram to `to`, of which the input changes nothing or one thing.
class datagram_maker {
 public:
    datagram_maker(const datagram_target& to, numbers& in) : to_(to), in_(in) {}

    datagram_frame make()
    {
        const std::uint8_t kind = in_.byte(), shape = in_.byte();
        set_path((shape & 1) != 0);
        headers_.bth = {.opcode = (shape & 2) != 0 ? net::roce_opcode::ud_send_only_immediate
                                                   : net::roce_opcode::ud_send_only,
                        .solicited = (shape & 4) != 0,
                        .destination_qp = to_.number,
                        .psn = in_.word() & 0xffffff};
        headers_.queue_key = to_.queue_key;
        headers_.source_qp = in_.half();
        payload_bytes_ = in_.half() % (to_.path_mtu + 1);
        bool honest = change_header(kind % 16);
        build();
        if (!frame_.empty())
            honest = !change_frame(kind % 16) && honest;
        return {std::move(frame_), honest};
    }

 private:
    using ground = datagram_ground;

    void set_path(bool ipv6)
    {
        path_.destination_mac = ground::mac;
        path_.l3 = ipv6 ? net::l3_kind::ipv6 : net::l3_kind::ipv4;
        path_.destination = ipv6 ? ground::ipv6 : ground::ipv4;
        path_.source = path_.destination;
        path_.source.back() = 2;
        ip_ = 14;
    }
    /// @return false: the datagram may not be what its receiver takes any more
    bool change_header(unsigned kind)
    {
        switch (kind) {
            case 4: headers_.queue_key ^= in_.byte() % 2 == 0 ? 1u << in_.byte() % 32 : in_.word(); break;
            case 5: headers_.bth.destination_qp = (to_.number + in_.word()) & 0xffffff; break;
            case 6: headers_.bth.opcode = static_cast<net::roce_opcode>(in_.byte()); break;
            case 7: headers_.bth.partition_key = in_.half(); break;
            case 8: payload_bytes_ = in_.half() % 3000u; break;
            case 9: to_group(in_.byte()); break;
            case 10: change_path(in_.byte()); break;
            default: return true;
        }
        return false;
    }
    void to_group(std::uint8_t how)
    {
        path_.l3 = net::l3_kind::ipv4;
        path_.destination = ground::group;
        path_.source = ground::ipv4;
        path_.destination_mac = (how & 1) != 0 ? ground::mac : ground::group_mac;
        if ((how & 2) == 0)
            headers_.bth.destination_qp = ground::number_of_groups;
    }
    void change_path(std::uint8_t how)
    {
        if ((how & 1) != 0)
            path_.destination_mac[how / 16 % 6] ^= in_.byte();
        if ((how & 2) != 0)
            path_.destination[12 + how / 16 % 4] ^= in_.byte();
        path_.tag_count = how / 4 % 3;
        path_.tags[0].tci = (how & 0x10) != 0 ? in_.half() : 0;
        ip_ = 14 + std::size_t{path_.tag_count} * 4;
    }
    void build()
    {
        static const std::vector<std::uint8_t> payload(3000, 0x5a);
        frame_.resize(net::most_roce_headers_bytes + payload.size() + 8);
        frame_.resize(net::build_whole_roce(frame_, path_, headers_, std::span(payload).first(payload_bytes_)));
    }
    /// @return whether it has changed something
    bool change_frame(unsigned kind)
    {
        const std::size_t udp = ip_ + (path_.l3 == net::l3_kind::ipv4 ? 20 : 40);
        switch (kind) {
            case 11: frame_.resize(in_.half() % (frame_.size() + 64)); return true;
            case 12: {
                const std::size_t lengths[]{path_.l3 == net::l3_kind::ipv4 ? ip_ + 2 : ip_ + 4, udp + 4};
                const std::uint8_t which = in_.byte();
                for (unsigned each = 0; each != 2; ++each)
                    if ((which >> each & 1) != 0)
                        frame_[lengths[each] + 1] = static_cast<std::uint8_t>(frame_[lengths[each] + 1] + in_.byte());
                if ((which & 4) != 0)
                    frame_[lengths[which >> 3 & 1]] ^= in_.byte();
                break;
            }
            case 13: frame_[udp + 8 + 1] ^= in_.byte(); break; // pad, version, solicited, migrated
            case 14: frame_[in_.half() % frame_.size()] ^= in_.byte(); break;
            case 15: frame_[in_.half() % frame_.size()] ^= in_.byte(); return true; // its ICRC is that of before
            default: return false;
        }
        net::store_icrc(&frame_[frame_.size() - 4],
                        net::icrc_of(std::span(frame_).subspan(ip_, frame_.size() - 4 - ip_)));
        net::fill_checksums(frame_, true, in_.byte() % 2 == 0);
        return true;
    }

    const datagram_target& to_;
    numbers& in_;
    net::roce_path path_;
    net::roce_headers headers_;
    std::size_t payload_bytes_ = 0, ip_ = 14;
    std::vector<std::uint8_t> frame_;
};

} // namespace weftio::fuzz
