#include "methods.hpp"

#include <endian.h>
#include <fmt/format.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/guarded.hpp"
#include "refusals.hpp"

namespace weftio::verbs {

namespace {

struct refused_method {
    method_id id;
    const char* name; ///< as in Linux
    const char* reason;
};

/// What libibverbs also does by write(), or finds in /sys.
constexpr auto other_ways = std::to_array<method_id>({
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY},
    {UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY},
    {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE},
    {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY},
    {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE},
    {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY},
    {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE},
    {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY},
    {UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY},
    {UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY},
    {UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY},
    {UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY},
    {UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY},
    {UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE},
    {UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY},
});

constexpr const char *no_devx = "the device has no DevX", *no_flows = "the device has no flow steering",
                     *no_import = "contexts and their objects cannot be imported",
                     *no_device_memory = "the device has no memory of its own",
                     *no_paging = "the device has no on-demand paging";

constexpr auto refused_methods = std::to_array<refused_method>({
    {{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT}, "QUERY_CONTEXT", no_import},
    {{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT}, "MLX5_QUERY_PORT", "the port has no virtual ports (vport)"},
    {{UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY}, "PD_QUERY", no_import},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR}, "QUERY_MR", no_import},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR}, "ADVISE_MR", no_paging},
    {{UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG}, "DM_MR_REG", no_device_memory},
    {{UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC}, "DM_ALLOC", no_device_memory},
    {{UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY}, "DM_QUERY", no_import},
    {{UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE}, "COUNTERS_CREATE", no_flows},
    {{UVERBS_OBJECT_FLOW_ACTION, UVERBS_METHOD_FLOW_ACTION_ESP_CREATE}, "FLOW_ACTION_ESP_CREATE", no_flows},
    {{UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_MODIFY_HEADER},
     "FLOW_ACTION_CREATE_MODIFY_HEADER",
     no_flows},
    {{UVERBS_OBJECT_FLOW_ACTION, MLX5_IB_METHOD_FLOW_ACTION_CREATE_PACKET_REFORMAT},
     "FLOW_ACTION_CREATE_PACKET_REFORMAT",
     no_flows},
    {{MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE}, "FLOW_MATCHER_CREATE", no_flows},
    {{MLX5_IB_OBJECT_STEERING_ANCHOR, MLX5_IB_METHOD_STEERING_ANCHOR_CREATE}, "STEERING_ANCHOR_CREATE", no_flows},
    {{MLX5_IB_OBJECT_VAR, MLX5_IB_METHOD_VAR_OBJ_ALLOC}, "VAR_OBJ_ALLOC", "the device has no doorbells for virtio"},
    {{MLX5_IB_OBJECT_PP, MLX5_IB_METHOD_PP_OBJ_ALLOC}, "PP_OBJ_ALLOC", "the device has no packet pacing"},
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER}, "DEVX_OTHER", no_devx},
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR}, "DEVX_QUERY_UAR", no_devx},
    {{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN}, "DEVX_QUERY_EQN", no_devx},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE}, "DEVX_OBJ_CREATE", no_devx},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY}, "DEVX_OBJ_MODIFY", no_devx},
    {{MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY}, "DEVX_OBJ_QUERY", no_devx},
    {{MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG}, "DEVX_UMEM_REG", no_devx},
    {{MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC}, "DEVX_ASYNC_CMD_FD_ALLOC", no_devx},
    {{MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC},
     "DEVX_ASYNC_EVENT_FD_ALLOC",
     no_devx},
});

/// Whether a DevX command reads capabilities, as libmlx5 does for each context.
bool reads_capabilities(const method_call& what) noexcept
{
    constexpr std::uint16_t query_hca_cap = 0x100, query_adapter = 0x101;
    const ib_uverbs_attr* const command = what.find(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
    std::uint16_t number = 0;
    if (!command || command->len <= sizeof command->data)
        return false;
    const bool read = core::guarded_copy(&number, reinterpret_cast<const void*>(command->data), sizeof number);
    return read && (be16toh(number) == query_hca_cap || be16toh(number) == query_adapter);
}

/// Whether libraries make the request only to see which error they get.
bool is_probe(const method_call& what) noexcept
{
    return what.id() == method_id{MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER} && reads_capabilities(what);
}

int refuse(const method_call& what) noexcept
{
    const auto row = std::ranges::find(refused_methods, what.id(), &refused_method::id);
    if (row != refused_methods.end()) {
        tell_refused(row->name, is_probe(what) ? probe_of(row->reason) : unsupported{row->reason});
        return -EOPNOTSUPP;
    }
    std::array<char, 64> name{};
    fmt::format_to_n(name.data(), name.size() - 1, "method {} of object {}", what.id().method, what.id().object);
    tell_refused(name.data(), probe_of("the device does not know this method", EPROTONOSUPPORT));
    return -EPROTONOSUPPORT;
}

} // namespace

bool is_supported(const method_call& what) noexcept
{
    return what.id() == method_id{UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR};
}

int refuse_method(const method_call& what) noexcept
{
    return std::ranges::find(other_ways, what.id()) != other_ways.end() ? -ENOTTY : refuse(what);
}

} // namespace weftio::verbs
