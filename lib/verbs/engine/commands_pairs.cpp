// Queue pairs.
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "commands.hpp"
#include "core/log.hpp"
#include "events.hpp"
#include "net/roce_headers.hpp"
#include "wires/members.hpp"

namespace weftio::verbs {

namespace {

// Values of verbs that the kernel's headers for programs do not name: types, states, and what MODIFY_QP sets.
constexpr std::uint8_t type_rc = 2, type_uc = 3;
enum state_code : std::uint8_t { code_reset, code_init, code_rtr, code_rts, code_sqd, code_sqe, code_err };
enum attribute : std::uint32_t {
    sets_state = 1u << 0,
    names_state = 1u << 1,
    sets_drained_event = 1u << 2,
    sets_access = 1u << 3,
    sets_pkey = 1u << 4,
    sets_port = 1u << 5,
    sets_qkey = 1u << 6,
    sets_path = 1u << 7,
    sets_path_mtu = 1u << 8,
    sets_timeout = 1u << 9,
    sets_retry_count = 1u << 10,
    sets_rnr_retry = 1u << 11,
    sets_receive_psn = 1u << 12,
    sets_reads = 1u << 13,
    sets_other_path = 1u << 14,
    sets_rnr_timer = 1u << 15,
    sets_send_psn = 1u << 16,
    sets_reads_of_peer = 1u << 17,
    sets_migration = 1u << 18,
    sets_capabilities = 1u << 19,
    sets_peer = 1u << 20,
    sets_rate = 1u << 25,
};
constexpr std::uint32_t default_partition = 0xffff, peer_rights = 0xf;

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

/// Receives first, sends behind them (libmlx5).
void lay_out(context& in, const mlx5_ib_create_qp& of_driver, pair& made, queue_pair_options& options)
{
    constexpr std::size_t record_bytes = 8;
    require(of_driver.rq_wqe_shift <= 16 && of_driver.rq_wqe_count <= 32768 && of_driver.sq_wqe_count <= 32768, EINVAL);
    const std::size_t receive_bytes = std::size_t{of_driver.rq_wqe_count} << of_driver.rq_wqe_shift;
    const std::size_t send_bytes = std::size_t{of_driver.sq_wqe_count} * WEFTIO_WQE_BLOCK_BYTES;
    made.record_bytes = in.of.memory.adopt(reinterpret_cast<void*>(of_driver.db_addr), record_bytes);
    options.record = {.of = &made.record_bytes};
    options.receive_entries = of_driver.rq_wqe_count;
    options.send_blocks = 1; // of the NIC's, if the program has none
    if (receive_bytes + send_bytes == 0)
        return;
    made.ring_bytes = in.of.memory.adopt(reinterpret_cast<void*>(of_driver.buf_addr), receive_bytes + send_bytes);
    if (receive_bytes != 0) {
        options.receive_stride = 1u << of_driver.rq_wqe_shift;
        options.receive_ring = {.of = &made.ring_bytes};
    }
    if (send_bytes != 0) {
        options.send_blocks = of_driver.sq_wqe_count;
        options.send_ring = {.of = &made.ring_bytes, .offset = receive_bytes};
    }
}

/// Makes a queue pair and returns its handle. @param asked  of either form
std::uint32_t make_pair(context& in, const ib_uverbs_ex_create_qp& asked, const mlx5_ib_create_qp& of_driver)
{
    constexpr std::uint32_t scatter_to_completions = 1u << 1, allow_scatter = 1u << 8; // the NIC need not
    require(asked.qp_type == type_rc || asked.qp_type == type_uc, EOPNOTSUPP);
    require(asked.is_srq == 0 && asked.create_flags == 0 && asked.comp_mask == 0, EOPNOTSUPP);
    require((of_driver.flags & ~(scatter_to_completions | allow_scatter)) == 0, EOPNOTSUPP);
    auto made = std::make_shared<pair>(in.of.events);
    made->user_handle = asked.user_handle;
    made->made = asked;
    made->service = asked.qp_type == type_rc ? rdma_service::reliable : rdma_service::unreliable;
    made->in = use(in.domains.find(asked.pd_handle));
    made->sends = use(in.completion_queues.find(asked.send_cq_handle));
    made->receives = use(in.completion_queues.find(asked.recv_cq_handle));
    queue_pair_options options{.service = made->service,
                               .signal_all = asked.sq_sig_all != 0,
                               .user_index = in.cqe_version == 0 ? 0 : of_driver.uidx & 0xffffff,
                               .domain = made->in->number};
    lay_out(in, of_driver, *made, options);
    made->queue.emplace(in.of.rdma, in.of.memory, *made->sends->queue, *made->receives->queue, options);
    watch_failures(in, *made);
    const std::uint32_t handle = in.next_handle();
    in.pairs.add(handle, made);
    return handle;
}

ib_uverbs_create_qp_resp describe(const context& in, std::uint32_t handle)
{
    const pair& made = *in.pairs.find(handle);
    ib_uverbs_create_qp_resp says{};
    says.qp_handle = handle;
    says.qpn = made.queue->number();
    says.max_send_wr = made.made.max_send_wr;
    says.max_recv_wr = made.made.max_recv_wr;
    says.max_send_sge = made.made.max_send_sge;
    says.max_recv_sge = made.made.max_recv_sge;
    says.max_inline_data = made.made.max_inline_data;
    return says;
}

mlx5_ib_create_qp_resp driver_part(context& in) noexcept
{
    mlx5_ib_create_qp_resp says{};
    says.bfreg_index = in.next_doorbell();
    return says;
}

/// Of a GID, as inet_ntop() writes it: IPv4 where the GID stands for such an address.
std::string text_of(const std::uint8_t (&gid)[16])
{
    net::roce_gid address{};
    std::memcpy(address.data(), gid, sizeof gid);
    return net::text_of(address);
}

/// The address of a peer by the number of its queue pair, on a wire in memory, where no two are the same. @throws failure
std::string address_on_wire(const node& at, std::uint32_t number)
{
    require(!at.wire.empty(), EINVAL);
    for (const wires::member_facts& each : wires::members_of(at.wire))
        if (number - each.first_queue < each.queues)
            return net::text_of(each.first_address);
    throw failure{EINVAL};
}

/// A RoCE port refuses paths without a GID. A wire in memory knows whom the program means, and says what a port would say.
void set_path_without_gid(const context& in, std::uint32_t number, queue_pair_attributes& with)
{
    with.peer_address = address_on_wire(in.of, number);
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format(
            "weftio-run: the program names the peer of a queue pair by its number {} and no GID, which a "
            "ConnectX with an Ethernet port refuses (EINVAL); pass a GID index, as in ibv_rc_pingpong -g 0",
            number);
    });
}

void set_path(const context& in, const ib_uverbs_modify_qp& asked, queue_pair_attributes& with)
{
    const ib_uverbs_qp_dest& to = asked.dest;
    require(to.port_num <= 1, EINVAL);
    if (to.is_global == 0)
        return set_path_without_gid(in, asked.dest_qp_num, with);
    require(to.sgid_index < in.of.rdma.gids().size(), EINVAL);
    with.peer_address = text_of(to.dgid);
    with.gid_index = to.sgid_index;
    with.traffic_class = to.traffic_class;
    with.hop_limit = to.hop_limit == 0 ? 64 : to.hop_limit;
}

template <class Value, class Given>
void set_if(std::uint32_t mask, attribute which, std::optional<Value>& to, Given given)
{
    if ((mask & which) != 0)
        to = static_cast<Value>(given);
}

queue_pair_attributes attributes_of(const context& in, const ib_uverbs_modify_qp& asked)
{
    const std::uint32_t mask = asked.attr_mask;
    require((mask & (sets_other_path | sets_rate | sets_capabilities | sets_qkey)) == 0, EOPNOTSUPP);
    require((mask & sets_pkey) == 0 || asked.pkey_index == 0, EINVAL);
    require((mask & sets_port) == 0 || asked.port_num == 1, EINVAL);
    require((mask & sets_path_mtu) == 0 || (asked.path_mtu >= 1 && asked.path_mtu <= 5), EINVAL);
    queue_pair_attributes with;
    if ((mask & sets_pkey) != 0)
        with.partition_key = default_partition;
    if ((mask & sets_access) != 0)
        with.rights = static_cast<access>(asked.qp_access_flags & peer_rights);
    if ((mask & sets_path) != 0)
        set_path(in, asked, with);
    set_if(mask, sets_path_mtu, with.path_mtu, 128u << (asked.path_mtu & 7));
    set_if(mask, sets_peer, with.peer_queue, asked.dest_qp_num);
    set_if(mask, sets_receive_psn, with.receive_psn, asked.rq_psn & 0xffffff);
    set_if(mask, sets_send_psn, with.send_psn, asked.sq_psn & 0xffffff);
    set_if(mask, sets_reads_of_peer, with.most_reads_of_peer, asked.max_dest_rd_atomic);
    set_if(mask, sets_reads, with.most_reads, asked.max_rd_atomic);
    set_if(mask, sets_rnr_timer, with.min_rnr_timer, asked.min_rnr_timer & 31);
    set_if(mask, sets_timeout, with.timeout, asked.timeout);
    set_if(mask, sets_retry_count, with.retry_count, asked.retry_cnt);
    set_if(mask, sets_rnr_retry, with.rnr_retry, asked.rnr_retry);
    return with;
}

/// Remembers what was set, for QUERY_QP.
void note(const ib_uverbs_modify_qp& asked, ib_uverbs_modify_qp& known)
{
    const auto copy = [&](attribute which, auto member) {
        if ((asked.attr_mask & which) != 0)
            known.*member = asked.*member;
    };
    copy(sets_access, &ib_uverbs_modify_qp::qp_access_flags);
    copy(sets_pkey, &ib_uverbs_modify_qp::pkey_index);
    copy(sets_port, &ib_uverbs_modify_qp::port_num);
    copy(sets_path, &ib_uverbs_modify_qp::dest);
    copy(sets_path_mtu, &ib_uverbs_modify_qp::path_mtu);
    copy(sets_peer, &ib_uverbs_modify_qp::dest_qp_num);
    copy(sets_receive_psn, &ib_uverbs_modify_qp::rq_psn);
    copy(sets_send_psn, &ib_uverbs_modify_qp::sq_psn);
    copy(sets_reads_of_peer, &ib_uverbs_modify_qp::max_dest_rd_atomic);
    copy(sets_reads, &ib_uverbs_modify_qp::max_rd_atomic);
    copy(sets_rnr_timer, &ib_uverbs_modify_qp::min_rnr_timer);
    copy(sets_timeout, &ib_uverbs_modify_qp::timeout);
    copy(sets_retry_count, &ib_uverbs_modify_qp::retry_cnt);
    copy(sets_rnr_retry, &ib_uverbs_modify_qp::rnr_retry);
}

} // namespace

void create_qp(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_create_qp>();
    ib_uverbs_ex_create_qp same{};
    static_assert(offsetof(ib_uverbs_create_qp, driver_data) - offsetof(ib_uverbs_create_qp, user_handle) ==
                  offsetof(ib_uverbs_ex_create_qp, comp_mask));
    std::memcpy(&same, &asked.user_handle, offsetof(ib_uverbs_ex_create_qp, comp_mask));
    const std::uint32_t handle = make_pair(in, same, what.driver<mlx5_ib_create_qp>());
    what.respond_or([&] { in.pairs.remove(handle); }, describe(in, handle), driver_part(in));
}

void create_qp_extended(context& in, call& what)
{
    const std::uint32_t handle =
        make_pair(in, what.request<ib_uverbs_ex_create_qp>(), what.driver<mlx5_ib_create_qp>());
    ib_uverbs_ex_create_qp_resp core{};
    core.base = describe(in, handle);
    core.response_length = sizeof core;
    what.respond_or([&] { in.pairs.remove(handle); }, core, driver_part(in));
}

void modify_qp(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_modify_qp>();
    pair& changed = *in.pairs.find(asked.qp_handle);
    const rdma_state now = changed.queue->state();
    require((asked.attr_mask & names_state) == 0 || state_of(asked.cur_qp_state) == now, EINVAL);
    const rdma_state to = (asked.attr_mask & sets_state) != 0 ? state_of(asked.qp_state) : now;
    require(!(now == rdma_state::reset && to == rdma_state::init) || (asked.attr_mask & sets_port) != 0, EINVAL);
    leave_state(in, changed, to);
    queue_pair_attributes with;
    if (to != rdma_state::reset && to != rdma_state::error) // programs set what they like then, and it says nothing
        with = attributes_of(in, asked);
    changed.queue->modify(to, with);
    if (with.peer_address)
        changed.peer_address = *with.peer_address;
    if (to == rdma_state::reset) {
        changed.set = {};
        changed.peer_address.clear();
    } else {
        note(asked, changed.set);
    }
    enter_state(in, changed, (asked.attr_mask & sets_drained_event) != 0 && asked.en_sqd_async_notify != 0);
}

void query_qp(context& in, call& what)
{
    const pair& known = *in.pairs.find(what.request<ib_uverbs_query_qp>().qp_handle);
    ib_uverbs_query_qp_resp says{};
    says.dest = known.set.dest;
    says.max_send_wr = known.made.max_send_wr;
    says.max_recv_wr = known.made.max_recv_wr;
    says.max_send_sge = known.made.max_send_sge;
    says.max_recv_sge = known.made.max_recv_sge;
    says.max_inline_data = known.made.max_inline_data;
    says.rq_psn = known.set.rq_psn;
    says.sq_psn = known.set.sq_psn;
    says.dest_qp_num = known.set.dest_qp_num;
    says.qp_access_flags = known.set.qp_access_flags;
    says.qp_state = says.cur_qp_state = code_of(known.queue->state());
    says.path_mtu = known.set.path_mtu;
    says.sq_draining = known.queue->draining();
    says.max_rd_atomic = known.set.max_rd_atomic;
    says.max_dest_rd_atomic = known.set.max_dest_rd_atomic;
    says.min_rnr_timer = known.set.min_rnr_timer;
    says.port_num = known.set.port_num;
    says.timeout = known.set.timeout;
    says.retry_cnt = known.set.retry_cnt;
    says.rnr_retry = known.set.rnr_retry;
    says.sq_sig_all = known.made.sq_sig_all;
    what.respond(says);
}

void destroy_qp(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_destroy_qp>().qp_handle;
    const std::shared_ptr<pair> ended = in.pairs.find(handle, in.why_missing(handle));
    look_for_events(in, *ended);
    in.pairs.remove(handle);
    ended->queue.reset();
    ib_uverbs_destroy_qp_resp core{};
    core.events_reported = end_events(in, ended->async, ended->user_handle);
    what.respond(core);
}

} // namespace weftio::verbs
