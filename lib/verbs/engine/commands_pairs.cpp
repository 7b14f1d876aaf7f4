// CREATE_QP, QUERY_QP and DESTROY_QP.
#include <cerrno>
#include <cstring>

#include "commands.hpp"
#include "events.hpp"
#include "refusals.hpp"
#include "verbs_values.hpp"

namespace weftio::verbs {

namespace {

/// The service of an enum ibv_qp_type. @throws unsupported
rdma_service service_of(std::uint8_t type)
{
    switch (type) {
        case 2: return rdma_service::reliable;
        case 3: return rdma_service::unreliable;
        case 4: return rdma_service::datagram;
        case 8: throw unsupported{"the device has no raw packets"};
        case 9:
        case 10: throw unsupported{"the device has no XRC"};
        default: throw unsupported{"the device does not know this type of queue pair"};
    }
}

/// @throws unsupported
void require_known_options(const ib_uverbs_ex_create_qp& asked, const mlx5_ib_create_qp& of_driver)
{
    constexpr std::uint32_t scatter_to_completions = 1u << 1, allow_scatter = 1u << 8; // optional for the NIC
    require_feature(asked.create_flags == 0 && asked.comp_mask == 0, "the device lacks a flag of ibv_create_qp_ex");
    require_feature((of_driver.flags & ~(scatter_to_completions | allow_scatter)) == 0,
                    "the device lacks a flag of mlx5dv_create_qp");
}

/// Layout of the program's rings in libmlx5: receives first, then sends.
void lay_out(context& in, const mlx5_ib_create_qp& of_driver, pair& made, queue_pair_options& options)
{
    constexpr std::size_t record_bytes = 8;
    require(of_driver.rq_wqe_shift <= 16 && of_driver.rq_wqe_count <= 32768 && of_driver.sq_wqe_count <= 32768, EINVAL);
    const std::size_t receive_bytes = std::size_t{of_driver.rq_wqe_count} << of_driver.rq_wqe_shift;
    const std::size_t send_bytes = std::size_t{of_driver.sq_wqe_count} * WEFTIO_WQE_BLOCK_BYTES;
    made.record_bytes = in.of.memory.adopt(reinterpret_cast<void*>(of_driver.db_addr), record_bytes);
    options.record = {.of = &made.record_bytes};
    options.receive_entries = made.receive_entries = of_driver.rq_wqe_count;
    made.receive_pieces = (1u << of_driver.rq_wqe_shift) / WEFTIO_WQE_SEGMENT_BYTES;
    options.send_blocks = 1; // allocated by the NIC if the program has no send ring
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

/// Where programs ring: the first doorbell register of a page (MLX5_BF_OFFSET). libmlx5 alternates between its halves
/// with 64-byte stores only, UCX always.
void set_doorbell(context& in, pair& made, queue_pair_options& options)
{
    constexpr std::size_t page_bytes = 4096, first_register = 0x800;
    made.doorbell = in.next_doorbell();
    options.doorbell = {.of = &in.doorbell_bytes(), .offset = *made.doorbell * page_bytes + first_register};
    options.two_doorbells = true;
}

/// Makes a queue pair and returns its handle. @param asked  converted from either form of the command
std::uint32_t make_pair(context& in, const ib_uverbs_ex_create_qp& asked, const mlx5_ib_create_qp& of_driver)
{
    if ((of_driver.flags & (MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI)) != 0)
        throw probe_of("the device has no DC");
    const rdma_service service = service_of(asked.qp_type);
    require_known_options(asked, of_driver);
    auto made = std::make_shared<pair>(in.of.events);
    made->user_handle = asked.user_handle;
    made->made = asked;
    made->service = service;
    made->in = use(in.domains.find(asked.pd_handle));
    made->sends = use(in.completion_queues.find(asked.send_cq_handle));
    made->receives = use(in.completion_queues.find(asked.recv_cq_handle));
    queue_pair_options options{.service = made->service,
                               .signal_all = asked.sq_sig_all != 0,
                               .user_index = in.cqe_version == 0 ? 0 : of_driver.uidx & 0xffffff,
                               .domain = made->in->number};
    if (asked.is_srq != 0) {
        made->shares = use(in.shared_queues.find(asked.srq_handle));
        options.shared = &*made->shares->queue;
        if (in.cqe_version == 0) // libmlx5 then finds the shared queue by its number
            options.user_index = options.shared->number();
    }
    lay_out(in, of_driver, *made, options);
    set_doorbell(in, *made, options);
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

mlx5_ib_create_qp_resp driver_part(const context& in, std::uint32_t handle)
{
    constexpr std::uint32_t registers_of_a_page = 4;
    mlx5_ib_create_qp_resp says{};
    says.bfreg_index = *in.pairs.find(handle)->doorbell * registers_of_a_page;
    return says;
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
    what.respond_or([&] { in.pairs.remove(handle); }, describe(in, handle), driver_part(in, handle));
}

void create_qp_extended(context& in, call& what)
{
    const std::uint32_t handle =
        make_pair(in, what.request<ib_uverbs_ex_create_qp>(), what.driver<mlx5_ib_create_qp>());
    ib_uverbs_ex_create_qp_resp core{};
    core.base = describe(in, handle);
    core.response_length = sizeof core;
    what.respond_or([&] { in.pairs.remove(handle); }, core, driver_part(in, handle));
}

void query_qp(context& in, call& what)
{
    const pair& known = *in.pairs.find(what.request<ib_uverbs_query_qp>().qp_handle);
    ib_uverbs_query_qp_resp says{};
    says.dest = known.set.dest;
    says.max_send_wr = known.made.max_send_wr;
    says.max_recv_wr = known.receive_entries; // as in Linux: of the ring
    says.max_send_sge = known.made.max_send_sge;
    says.max_recv_sge = known.receive_pieces;
    says.max_inline_data = known.made.max_inline_data;
    const rdma_dump now = known.queue->dump();
    says.rq_psn = now.expected_psn;
    says.sq_psn = now.next_psn;
    says.dest_qp_num = known.set.dest_qp_num;
    says.qkey = known.set.qkey;
    says.qp_access_flags = known.set.qp_access_flags & peer_rights;
    says.pkey_index = known.set.pkey_index;
    says.qp_state = says.cur_qp_state = code_of(now.state);
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
    require(ended->groups.empty(), EBUSY);
    poll_events(in, *ended);
    in.pairs.remove(handle);
    ended->queue.reset();
    ib_uverbs_destroy_qp_resp core{};
    core.events_reported = end_events(in, ended->async, ended->user_handle);
    what.respond(core);
}

} // namespace weftio::verbs
