// Shared receive queues.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "commands.hpp"
#include "events.hpp"
#include "refusals.hpp"
#include "verbs_values.hpp"

namespace weftio::verbs {

namespace {

/// Layout of libmlx5: entries of a link of 16 bytes and the segments, rounded up to a power of two of at least 32
/// bytes; one entry more than the program requests, rounded up to a power of two.
shared_receives_options lay_out(context& in, std::uint32_t max_wr, std::uint32_t max_sge,
                                const mlx5_ib_create_srq& of_driver, shared& made)
{
    constexpr std::uint32_t link_bytes = 16, segment_bytes = 16, least_stride = 32;
    constexpr std::size_t record_bytes = 8;
    require(max_wr != 0 && max_wr <= most_shared_receives && max_sge <= most_shared_segments, EINVAL);
    shared_receives_options options{.entries = std::bit_ceil(max_wr + 1), .domain = made.in->number};
    options.stride = std::max(least_stride, std::bit_ceil(link_bytes + max_sge * segment_bytes));
    made.ring_bytes =
        in.of.memory.adopt(reinterpret_cast<void*>(of_driver.buf_addr), std::size_t{options.entries} * options.stride);
    made.record_bytes = in.of.memory.adopt(reinterpret_cast<void*>(of_driver.db_addr), record_bytes);
    options.ring = {.of = &made.ring_bytes};
    options.record = {.of = &made.record_bytes};
    return options;
}

/// Makes the queue and responds. @param asked  of either form of the command
template <class Asked>
void make_queue(context& in, call& what, const Asked& asked)
{
    const auto of_driver = what.driver<mlx5_ib_create_srq>();
    require_feature(of_driver.flags == 0, "the device lacks a flag of mlx5dv_create_srq");
    auto made = std::make_shared<shared>();
    made->user_handle = asked.user_handle;
    made->in = use(in.domains.find(asked.pd_handle));
    made->most_segments = asked.max_sge;
    const shared_receives_options options = lay_out(in, asked.max_wr, asked.max_sge, of_driver, *made);
    made->queue.emplace(in.of.rdma, in.of.memory, options);
    ib_uverbs_create_srq_resp core{};
    core.srq_handle = in.next_handle();
    core.max_wr = options.entries - 1;
    core.max_sge = asked.max_sge;
    core.srqn = made->queue->number();
    made->most_entries = core.max_wr;
    what.respond(core, mlx5_ib_create_srq_resp{.srqn = made->queue->number(), .reserved = 0});
    in.shared_queues.add(core.srq_handle, made);
}

} // namespace

void create_srq(context& in, call& what)
{
    make_queue(in, what, what.request<ib_uverbs_create_srq>());
}

void create_srq_extended(context& in, call& what)
{
    constexpr std::uint32_t basic = 0, of_xrc = 1; // enum ibv_srq_type
    const auto asked = what.request<ib_uverbs_create_xsrq>();
    require_feature(asked.srq_type != of_xrc, "the device has no XRC");
    require_feature(asked.srq_type == basic, "the device has no tag matching");
    make_queue(in, what, asked);
}

/// As on a ConnectX, its size is fixed (IBV_DEVICE_SRQ_RESIZE is not set).
void modify_srq(context& in, call& what)
{
    constexpr std::uint32_t of_size = 1, of_limit = 2; // enum ibv_srq_attr_mask
    const auto asked = what.request<ib_uverbs_modify_srq>();
    shared& changed = *in.shared_queues.find(asked.srq_handle);
    if ((asked.attr_mask & of_size) != 0)
        throw unsupported{.reason = "the size of a shared receive queue is fixed, as on a ConnectX", .number = EINVAL};
    if ((asked.attr_mask & of_limit) == 0)
        return;
    require(asked.srq_limit <= changed.most_entries, EINVAL);
    poll_events(in, changed);
    changed.queue->set_limit(asked.srq_limit);
    changed.armed = asked.srq_limit != 0;
    poll_events(in, changed);
}

void query_srq(context& in, call& what)
{
    const shared& known = *in.shared_queues.find(what.request<ib_uverbs_query_srq>().srq_handle);
    ib_uverbs_query_srq_resp says{};
    says.max_wr = known.most_entries;
    says.max_sge = known.most_segments;
    says.srq_limit = known.queue->standing().limit;
    what.respond(says);
}

void destroy_srq(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_destroy_srq>().srq_handle;
    const std::shared_ptr<shared> ended = in.shared_queues.find(handle, in.why_missing(handle));
    require(ended->users == 0, EBUSY);
    in.shared_queues.remove(handle);
    ib_uverbs_destroy_srq_resp core{};
    core.events_reported = end_events(in, ended->async, ended->user_handle);
    what.respond(core);
}

} // namespace weftio::verbs
