#include "nic/soft/rdma/datagram_route.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "nic/soft/rdma/roce_sender.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t number_mask = 0xffffff;

net::roce_path path_of(const weftio_wqe_datagram_segment& to, const rdma_own_address& source, std::uint32_t queue)
{
    constexpr std::uint8_t usual_hop_limit = 64;
    net::roce_path path;
    std::copy(std::begin(to.mac), std::end(to.mac), path.destination_mac.begin());
    std::copy(std::begin(to.gid), std::end(to.gid), path.destination.begin());
    path.source_mac = source.mac;
    path.source = source.address;
    path.l3 = net::is_ipv4(path.source) ? net::l3_kind::ipv4 : net::l3_kind::ipv6;
    path.flow_label = weftio_swap32(to.gid_flow_be) & 0xfffff;
    path.traffic_class = to.traffic_class;
    path.hop_limit = to.hop_limit == 0 ? usual_hop_limit : to.hop_limit;
    path.source_port = to.source_port_be == 0 ? source_port_between(queue, weftio_swap32(to.queue_be) & number_mask)
                                              : weftio_swap16(to.source_port_be);
    path.tag_count = source.vlan_tci == no_vlan ? 0 : 1;
    path.tags[0].tci = source.vlan_tci;
    return path;
}

} // namespace

refusal datagram_route::aim(const ring_segments& entry, const std::vector<rdma_own_address>& sources,
                            std::uint32_t queue)
{
    using part = std::array<std::uint32_t, entry::words_per_segment>;
    constexpr std::size_t words_of_key = 2;
    words wanted;
    for (std::uint32_t each = 0; each != 3; ++each)
        std::ranges::copy(entry.load<part>(1 + each), wanted.begin() + each * std::tuple_size_v<part>);
    const bool same = std::equal(wanted.begin() + words_of_key, wanted.end(), segment_.begin() + words_of_key);
    segment_ = wanted;
    if (same)
        return refusal::none;
    const auto to = std::bit_cast<weftio_wqe_datagram_segment>(wanted);
    const std::uint32_t index = weftio_swap32(to.gid_flow_be) >> 20 & 0xff;
    if (index < sources.size())
        path_ = path_of(to, sources[index], queue);
    if (index < sources.size() && net::is_ipv4(path_.source) == net::is_ipv4(path_.destination)) {
        front_ = net::roce_front(path_);
        return refusal::none;
    }
    segment_ = {}; // has no path
    return refusal::wrong_source;
}

std::uint32_t datagram_route::peer_queue() const noexcept
{
    return weftio_swap32(segment_[2]) & number_mask;
}

std::uint32_t datagram_route::queue_key() const noexcept
{
    return weftio_swap32(segment_[0]);
}

} // namespace weftio::nic::soft
