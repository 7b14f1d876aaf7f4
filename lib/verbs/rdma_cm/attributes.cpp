// INIT_QP_ATTR: what a queue pair gets in each state.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "engine/failure.hpp"
#include "engine/verbs_values.hpp"
#include "rdma/transitions.hpp"
#include "rdma_cm/service.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

/// What both ends have agreed on so far. @throws failure EINVAL
cm::agreement agreement_of(const identifier& one)
{
    require(one.request.has_value(), EINVAL);
    if (!one.passive) {
        require(one.reply.has_value(), EINVAL);
        return cm::agreed_by_active(*one.request, *one.reply);
    }
    if (one.reply)
        return cm::agreed_by_passive(*one.request, *one.reply);
    cm::agreement asked = cm::asked_of_passive(*one.request);
    asked.receive_psn = one.first_psn; // programs set up the queue pair before they accept
    return asked;
}

void set_initial(const identifier& one, ib_uverbs_qp_attr& to)
{
    constexpr std::uint32_t remote_write = 2, remote_read = 4, remote_atomic = 8;
    to.qp_attr_mask |= rdma::partition_key | rdma::port_number;
    to.port_num = 1;
    if (one.datagrams) {
        to.qp_attr_mask |= rdma::queue_key;
        to.qkey = one.queue_key;
        return;
    }
    to.qp_attr_mask |= rdma::rights;
    to.qp_access_flags = one.connection ? remote_write | remote_read | remote_atomic : 0;
}

void set_to_receive(const identifier& one, const cm::agreement& with, ib_uverbs_qp_attr& to)
{
    to.qp_attr_mask |= rdma::peer | rdma::path_mtu | rdma::peer_queue | rdma::receive_psn;
    to.ah_attr = address_handle(one, one.route.peer);
    to.path_mtu = static_cast<std::uint32_t>(std::countr_zero(with.path_mtu) - 7);
    to.dest_qp_num = with.peer_queue;
    to.rq_psn = with.receive_psn;
    if (with.transport != cm::transport_service::reliable)
        return;
    to.qp_attr_mask |= rdma::most_reads_of_peer | rdma::min_rnr_timer;
    to.max_dest_rd_atomic = with.most_reads_of_peer;
}

void set_to_send(const cm::agreement& with, ib_uverbs_qp_attr& to)
{
    to.qp_attr_mask |= rdma::send_psn;
    to.sq_psn = with.send_psn;
    if (with.transport != cm::transport_service::reliable)
        return;
    to.qp_attr_mask |= rdma::timeout | rdma::retry_count | rdma::rnr_retry | rdma::most_reads;
    to.timeout = with.timeout;
    to.retry_cnt = with.retry_count;
    to.rnr_retry = with.rnr_retry;
    to.max_rd_atomic = with.most_reads;
}

} // namespace

ib_uverbs_ah_attr address_handle(const identifier& one, const net::roce_gid& to) noexcept
{
    constexpr std::uint8_t hop_limit = 64;
    ib_uverbs_ah_attr made{};
    std::copy(to.begin(), to.end(), made.grh.dgid);
    made.grh.sgid_index = static_cast<std::uint8_t>(one.gid_index);
    made.grh.hop_limit = hop_limit;
    made.grh.traffic_class = one.traffic_class;
    made.is_global = 1;
    made.port_num = 1;
    return made;
}

ib_uverbs_qp_attr attributes_for(const identifier& one, const node& device, std::uint32_t state)
{
    ib_uverbs_qp_attr made{};
    made.qp_attr_mask = rdma::next_state;
    made.qp_state = state;
    switch (state) {
        case code_init: set_initial(one, made); return made;
        case code_rtr: {
            cm::agreement with = agreement_of(one);
            with.path_mtu = std::min(with.path_mtu, device.rdma.most_path_mtu());
            set_to_receive(one, with, made);
            return made;
        }
        case code_rts: set_to_send(agreement_of(one), made); return made;
        default: throw failure{EINVAL};
    }
}

} // namespace weftio::verbs::rdma_cm
