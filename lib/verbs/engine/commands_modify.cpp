// MODIFY_QP: moves a queue pair from state to state and sets its attributes.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "commands.hpp"
#include "core/log.hpp"
#include "events.hpp"
#include "net/roce_headers.hpp"
#include "rdma/transitions.hpp"
#include "refusals.hpp"
#include "verbs_values.hpp"
#include "wires/members.hpp"

namespace weftio::verbs {

namespace {

constexpr std::uint8_t migrated = 0; // enum ibv_mig_state
constexpr std::uint16_t default_partition = 0xffff;

/// As in Linux (ib_modify_qp_is_ok), where RESET to ERR does not exist.
void require_way(rdma_service service, rdma_state from, rdma_state to, std::uint32_t mask)
{
    require(from != rdma_state::reset || to != rdma_state::error, EINVAL);
    require(rdma::transition_of(service, from, to).takes(mask), EINVAL);
}

/// The address of a peer from its queue pair number, on a wire in memory, where numbers are unique. @throws failure
std::string address_on_wire(const node& at, std::uint32_t number)
{
    require(!at.wire.empty(), EINVAL);
    for (const wires::member_facts& each : wires::members_of(at.wire))
        if (number - each.first_queue < each.queues)
            return net::text_of(each.first_address);
    throw failure{EINVAL};
}

/// A RoCE port refuses a path without a GID. A wire in memory finds the peer by its queue pair number, and logs that a
/// real port would refuse.
void set_path_without_gid(const context& in, std::uint32_t number, queue_pair_attributes& with)
{
    with.peer_address = address_on_wire(in.of, number);
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format(
            "weftio-run: the program names the peer of a queue pair by its number {} without a GID, which a ConnectX "
            "Ethernet port rejects (EINVAL); pass a GID index, as in ibv_rc_pingpong -g 0",
            number);
    });
}

void set_path(const context& in, const ib_uverbs_modify_qp& asked, queue_pair_attributes& with)
{
    const ib_uverbs_qp_dest& to = asked.dest;
    require(to.port_num == 1, EINVAL);
    if (to.is_global == 0)
        return set_path_without_gid(in, asked.dest_qp_num, with);
    require(to.sgid_index < in.of.rdma.gids().size(), EINVAL);
    with.peer_address = text_of(to.dgid);
    with.gid_index = to.sgid_index;
    with.traffic_class = to.traffic_class;
    with.hop_limit = to.hop_limit == 0 ? 64 : to.hop_limit;
}

template <class Value, class Given>
void set_if(std::uint32_t mask, rdma::attribute which, std::optional<Value>& to, Given given)
{
    if ((mask & which) != 0)
        to = static_cast<Value>(given);
}

queue_pair_attributes attributes_of(const context& in, const ib_uverbs_modify_qp& asked)
{
    const std::uint32_t mask = asked.attr_mask;
    require_feature((mask & rdma::other_path) == 0 &&
                        ((mask & rdma::migration) == 0 || asked.path_mig_state == migrated),
                    "the device has no alternate paths");
    require((mask & rdma::partition_key) == 0 || asked.pkey_index == 0, EINVAL);
    require((mask & rdma::port_number) == 0 || asked.port_num == 1, EINVAL);
    require((mask & rdma::path_mtu) == 0 || (asked.path_mtu >= 1 && asked.path_mtu <= 5), EINVAL);
    queue_pair_attributes with;
    if ((mask & rdma::partition_key) != 0)
        with.partition_key = default_partition;
    if ((mask & rdma::rights) != 0)
        with.rights = static_cast<access>(asked.qp_access_flags & peer_rights);
    if ((mask & rdma::peer) != 0)
        set_path(in, asked, with);
    set_if(mask, rdma::path_mtu, with.path_mtu, 128u << (asked.path_mtu & 7));
    set_if(mask, rdma::peer_queue, with.peer_queue, asked.dest_qp_num);
    set_if(mask, rdma::queue_key, with.queue_key, asked.qkey);
    set_if(mask, rdma::receive_psn, with.receive_psn, asked.rq_psn & 0xffffff);
    set_if(mask, rdma::send_psn, with.send_psn, asked.sq_psn & 0xffffff);
    set_if(mask, rdma::most_reads_of_peer, with.most_reads_of_peer, asked.max_dest_rd_atomic);
    set_if(mask, rdma::most_reads, with.most_reads, asked.max_rd_atomic);
    set_if(mask, rdma::min_rnr_timer, with.min_rnr_timer, asked.min_rnr_timer & 31);
    set_if(mask, rdma::timeout, with.timeout, asked.timeout);
    set_if(mask, rdma::retry_count, with.retry_count, asked.retry_cnt);
    set_if(mask, rdma::rnr_retry, with.rnr_retry, asked.rnr_retry);
    return with;
}

/// Stores what was set, for QUERY_QP.
void note(const ib_uverbs_modify_qp& asked, ib_uverbs_modify_qp& known)
{
    const auto copy = [&](rdma::attribute which, auto member) {
        if ((asked.attr_mask & which) != 0)
            known.*member = asked.*member;
    };
    copy(rdma::rights, &ib_uverbs_modify_qp::qp_access_flags);
    copy(rdma::partition_key, &ib_uverbs_modify_qp::pkey_index);
    copy(rdma::port_number, &ib_uverbs_modify_qp::port_num);
    copy(rdma::peer, &ib_uverbs_modify_qp::dest);
    copy(rdma::path_mtu, &ib_uverbs_modify_qp::path_mtu);
    copy(rdma::peer_queue, &ib_uverbs_modify_qp::dest_qp_num);
    copy(rdma::queue_key, &ib_uverbs_modify_qp::qkey);
    copy(rdma::receive_psn, &ib_uverbs_modify_qp::rq_psn);
    copy(rdma::send_psn, &ib_uverbs_modify_qp::sq_psn);
    copy(rdma::most_reads_of_peer, &ib_uverbs_modify_qp::max_dest_rd_atomic);
    copy(rdma::most_reads, &ib_uverbs_modify_qp::max_rd_atomic);
    copy(rdma::min_rnr_timer, &ib_uverbs_modify_qp::min_rnr_timer);
    copy(rdma::timeout, &ib_uverbs_modify_qp::timeout);
    copy(rdma::retry_count, &ib_uverbs_modify_qp::retry_cnt);
    copy(rdma::rnr_retry, &ib_uverbs_modify_qp::rnr_retry);
}

/// RESET clears what was set.
void note_move(pair& moved, const ib_uverbs_modify_qp& asked, rdma_state to, const queue_pair_attributes& with)
{
    if (to == rdma_state::reset) {
        moved.set = {};
        moved.peer_address.clear();
        return;
    }
    note(asked, moved.set);
    if (with.peer_address)
        moved.peer_address = *with.peer_address;
}

} // namespace

std::string text_of(const std::uint8_t (&gid)[16])
{
    net::roce_gid address{};
    std::memcpy(address.data(), gid, sizeof gid);
    return net::text_of(address);
}

rdma_state state_of(std::uint8_t code)
{
    constexpr std::array states{rdma_state::reset,
                                rdma_state::init,
                                rdma_state::ready_to_receive,
                                rdma_state::ready_to_send,
                                rdma_state::send_queue_drained,
                                rdma_state::send_queue_error,
                                rdma_state::error};
    require(code < states.size(), EINVAL);
    return states[code];
}

std::uint8_t code_of(rdma_state state) noexcept
{
    switch (state) {
        case rdma_state::reset: return code_reset;
        case rdma_state::init: return code_init;
        case rdma_state::ready_to_receive: return code_rtr;
        case rdma_state::ready_to_send: return code_rts;
        case rdma_state::send_queue_drained: return code_sqd;
        case rdma_state::send_queue_error: return code_sqe;
        case rdma_state::error: break;
    }
    return code_err;
}

void modify_qp(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_modify_qp>();
    pair& changed = *in.pairs.find(asked.qp_handle);
    const rdma_state now = changed.queue->state();
    require((asked.attr_mask & rdma::present_state) == 0 || state_of(asked.cur_qp_state) == now, EINVAL);
    const rdma_state to = (asked.attr_mask & rdma::next_state) != 0 ? state_of(asked.qp_state) : now;
    require_feature((asked.attr_mask & ~std::uint32_t{all_attributes}) == 0, "the device does not know an attribute");
    require_way(changed.service, now, to, asked.attr_mask);
    const queue_pair_attributes with = attributes_of(in, asked);
    leave_state(in, changed, to);
    changed.queue->modify(to, with);
    note_move(changed, asked, to, with);
    enter_state(in, changed, (asked.attr_mask & rdma::drained_event) != 0 && asked.en_sqd_async_notify != 0);
}

} // namespace weftio::verbs
