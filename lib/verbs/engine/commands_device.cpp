// The context of a program, and queries for its device and its port.
#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "commands.hpp"
#include "refusals.hpp"

namespace weftio::verbs {

void get_context(context& in, call& what)
{
    const auto asked = what.driver<mlx5_ib_alloc_ucontext_req_v2>();
    require(!in.asynchronous, EINVAL);
    require(what.driver_bytes() >= sizeof(mlx5_ib_alloc_ucontext_req), EINVAL);
    require((asked.flags & ~std::uint32_t{MLX5_IB_ALLOC_UCTX_DEVX}) == 0, EINVAL);
    if ((asked.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0) // EINVAL as in Linux: libmlx5 then requests it without
        throw probe_of("the device has no DevX", EINVAL);
    mlx5_ib_alloc_ucontext_resp says = describe_context(in.of, asked);
    says.response_length = static_cast<std::uint32_t>(std::min(sizeof says, what.driver_room()));
    in.link_was_up = in.of.port.link_up();
    in.asynchronous.emplace(sizeof(ib_uverbs_async_event_desc));
    in.cqe_version = says.cqe_version;
    in.make_doorbells(says.tot_bfregs / 2);
    ib_uverbs_get_context_resp core{};
    core.async_fd = static_cast<std::uint32_t>(in.asynchronous->program());
    core.num_comp_vectors = 1;
    what.respond_or(
        [&] {
            close(in.asynchronous->program());
            in.asynchronous.reset();
        },
        core, says);
}

void query_device(context& in, call& what)
{
    what.respond(describe_device(in.of));
}

void query_device_extended(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_ex_query_device>();
    require(asked.comp_mask == 0 && asked.reserved == 0, EINVAL);
    ib_uverbs_ex_query_device_resp says{};
    says.base = describe_device(in.of);
    says.response_length = static_cast<std::uint32_t>(std::min(sizeof says, what.core_room()));
    says.device_cap_flags_ex = says.base.device_cap_flags;
    mlx5_ib_query_device_resp of_driver{};
    of_driver.response_length = static_cast<std::uint32_t>(std::min(sizeof of_driver, what.driver_room()));
    what.respond(says, of_driver);
}

void query_port(context& in, call& what)
{
    require(what.request<ib_uverbs_query_port>().port_num == 1, EINVAL);
    what.respond(describe_port(in.of));
}

} // namespace weftio::verbs
