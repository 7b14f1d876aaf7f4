// Protection domains, memory regions and memory windows.
#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "commands.hpp"
#include "gpus.hpp"
#include "refusals.hpp"

namespace weftio::verbs {

namespace {

// Flags of REG_MR (rdma/ib_user_ioctl_verbs.h) in addition to the rights, which have the same values in the library.
constexpr std::uint32_t rights_mask = 0x1f, zero_based = 1u << 5, on_demand = 1u << 6, huge_pages = 1u << 7,
                        flush_global = 1u << 8, flush_persistent = 1u << 9, optional_flags = 0x3ffu << 20;

/// Page offset of an address.
constexpr std::uint64_t page_offset(std::uint64_t address) noexcept
{
    return address & 4095;
}

/// Adopts memory of the program, the host's or a GPU's.
/// @return options to register it with  @throws failure, error
region_options take_bytes(context& in, region& made)
{
    const std::uint32_t known = rights_mask | zero_based | huge_pages | optional_flags;
    require_feature((made.access & on_demand) == 0, "the device has no on-demand paging");
    require_feature((made.access & (flush_global | flush_persistent)) == 0, "the device has no FLUSH");
    require((made.access & ~known) == 0, EINVAL);
    // As in Linux, which counts pages: 0 bytes are in no page if they are at the start of one.
    require((made.length != 0 || page_offset(made.iova) != 0) && made.start + made.length >= made.start, EINVAL);
    if (made.start == 0)
        throw error(errc::not_reachable, fmt::format("weftio-run: memory region: {} bytes at address 0, where nothing "
                                                     "is mapped",
                                                     made.length));
    if (made.length == 0) {
        constexpr std::uint64_t never_named = ~std::uint64_t{4095};
        made.bytes = in.of.memory.adopt(reinterpret_cast<void*>(made.start), 1);
        return {.rights = access::none, .domain = made.in->number, .iova = never_named};
    }
    auto* const first = reinterpret_cast<void*>(made.start);
    if (std::optional<memory> of_gpu = adopt_gpu_memory(first, made.length); of_gpu)
        made.bytes = std::move(*of_gpu);
    else
        made.bytes = in.of.memory.adopt(first, made.length);
    return {.rights = static_cast<access>(made.access & rights_mask), .domain = made.in->number, .iova = made.iova};
}

/// Memory of a GPU has no pages whose mapping could be watched: the driver refuses copies once it is freed.
void watch(const context& in, region& made)
{
    if (made.bytes.cpu_address() == nullptr)
        made.watched.emplace();
    else
        made.watched.emplace(made.registered->lkey(), made.start, made.length, &in);
}

} // namespace

void alloc_pd(context& in, call& what)
{
    const std::uint32_t handle = in.next_handle();
    ib_uverbs_alloc_pd_resp core{};
    core.pd_handle = handle;
    what.respond(core, mlx5_ib_alloc_pd_resp{.pdn = handle & 0xffffff});
    in.domains.add(handle, std::make_shared<domain>());
}

void dealloc_pd(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_dealloc_pd>().pd_handle;
    require(in.domains.find(handle, in.why_missing(handle))->users == 0, EBUSY);
    in.domains.remove(handle);
}

void reg_mr(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_reg_mr>();
    require(page_offset(asked.start) == page_offset(asked.hca_va) || (asked.access_flags & zero_based) != 0, EINVAL);
    auto made = std::make_shared<region>();
    made->in = use(in.domains.find(asked.pd_handle));
    made->start = asked.start;
    made->length = asked.length;
    made->iova = (asked.access_flags & zero_based) != 0 ? 0 : asked.hca_va;
    made->access = asked.access_flags;
    const region_options options = take_bytes(in, *made);
    made->registered.emplace(in.of.port, made->bytes, options);
    watch(in, *made);
    ib_uverbs_reg_mr_resp core{};
    core.mr_handle = in.next_handle();
    core.lkey = core.rkey = made->registered->lkey();
    what.respond(core);
    in.regions.add(core.mr_handle, made);
}

/// The region keeps its key, as with mlx5. On failure it is unchanged.
void rereg_mr(context& in, call& what)
{
    constexpr std::uint32_t translation = 1, of_domain = 2, rights = 4;
    const auto asked = what.request<ib_uverbs_rereg_mr>();
    require(asked.flags != 0 && (asked.flags & ~(translation | of_domain | rights)) == 0, EINVAL);
    const bool moves = (asked.flags & translation) != 0;
    require(!moves || page_offset(asked.start) == page_offset(asked.hca_va), EINVAL);
    region& old = *in.regions.find(asked.mr_handle);
    require(old.registered->windows() == 0, EINVAL);
    auto made = std::make_shared<region>();
    made->in = use((asked.flags & of_domain) != 0 ? in.domains.find(asked.pd_handle) : old.in.share());
    made->start = moves ? asked.start : old.start;
    made->length = moves ? asked.length : old.length;
    made->iova = moves ? asked.hca_va : old.iova;
    made->access = (asked.flags & rights) != 0 ? asked.access_flags : old.access;
    const region_options options = take_bytes(in, *made);
    old.watched->stop();
    try {
        old.registered->replace(made->bytes, options);
    } catch (...) {
        watch(in, old);
        throw;
    }
    made->registered = std::move(old.registered);
    watch(in, *made);
    ib_uverbs_rereg_mr_resp core{};
    core.lkey = core.rkey = made->registered->lkey();
    in.regions.remove(asked.mr_handle);
    in.regions.add(asked.mr_handle, made);
    what.respond(core);
}

void dereg_mr(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_dereg_mr>().mr_handle;
    require(in.regions.find(handle, in.why_missing(handle))->registered->windows() == 0, EINVAL);
    in.regions.remove(handle);
}

void alloc_mw(context& in, call& what)
{
    const auto asked = what.request<ib_uverbs_alloc_mw>();
    require(asked.mw_type == static_cast<int>(window_type::type_1) ||
                asked.mw_type == static_cast<int>(window_type::type_2),
            EINVAL);
    auto made = std::make_shared<window>();
    made->in = use(in.domains.find(asked.pd_handle));
    made->made.emplace(in.of.rdma, static_cast<window_type>(asked.mw_type), made->in->number);
    ib_uverbs_alloc_mw_resp core{};
    core.mw_handle = in.next_handle();
    core.rkey = made->made->rkey();
    what.respond(core);
    in.windows.add(core.mw_handle, made);
}

/// A window that is bound is freed.
void dealloc_mw(context& in, call& what)
{
    const std::uint32_t handle = what.request<ib_uverbs_dealloc_mw>().mw_handle;
    in.windows.find(handle, in.why_missing(handle));
    in.windows.remove(handle);
}

} // namespace weftio::verbs
