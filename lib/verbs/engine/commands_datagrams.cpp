// Address handles and multicast groups of UD queue pairs.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "commands.hpp"
#include "verbs_values.hpp"

namespace weftio::verbs {

namespace {

pair& datagram_pair_of(context& in, std::uint32_t handle)
{
    pair& found = *in.pairs.find(handle);
    require(found.service == rdma_service::datagram, EINVAL);
    return found;
}

} // namespace

/// The MAC is resolved here. libmlx5 writes it into each entry, with the rest of the attributes.
void create_ah(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_create_ah>();
    require(asked.attr.port_num == 1 && asked.attr.is_global != 0, EINVAL);
    require(asked.attr.grh.sgid_index < in.of.rdma.gids().size(), EINVAL);
    auto made = std::make_shared<address>();
    made->in = use(in.domains.find(asked.pd_handle));
    const auto mac = in.of.rdma.mac_of(text_of(asked.attr.grh.dgid), asked.attr.grh.sgid_index);
    mlx5_ib_create_ah_resp of_driver{};
    of_driver.response_length = static_cast<std::uint32_t>(std::min(sizeof of_driver, what.driver_room()));
    static_assert(sizeof of_driver.dmac == sizeof mac);
    std::memcpy(of_driver.dmac, mac.data(), sizeof mac);
    ib_uverbs_create_ah_resp core{};
    core.ah_handle = in.next_handle();
    what.respond(core, of_driver);
    in.addresses.add(core.ah_handle, made);
}

void destroy_ah(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_destroy_ah>().ah_handle;
    in.addresses.find(handle, in.why_missing(handle));
    in.addresses.remove(handle);
}

void attach_mcast(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_attach_mcast>();
    pair& of = datagram_pair_of(in, asked.qp_handle);
    const std::string group = text_of(asked.gid);
    of.queue->attach(group);
    of.groups.insert(group);
}

void detach_mcast(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_detach_mcast>();
    pair& of = datagram_pair_of(in, asked.qp_handle);
    const std::string group = text_of(asked.gid);
    of.queue->detach(group);
    of.groups.erase(group);
}

} // namespace weftio::verbs
