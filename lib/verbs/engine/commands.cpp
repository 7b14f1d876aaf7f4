#include "commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace weftio::verbs {

namespace {

template <class Request, class Response>
constexpr command_form form = {sizeof(Request), sizeof(Response)};
template <class Request>
constexpr command_form quiet_form = {sizeof(Request), 0};

/// The shortest core parts that libraries of any version use: later fields are optional.
constexpr command_form extended_form(std::size_t request, std::size_t response) noexcept
{
    return {request, response};
}

constexpr auto rows = std::to_array<command_row>({
    {IB_USER_VERBS_CMD_GET_CONTEXT, false, "GET_CONTEXT", form<ib_uverbs_get_context, ib_uverbs_get_context_resp>,
     get_context},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, false, "QUERY_DEVICE", form<ib_uverbs_query_device, ib_uverbs_query_device_resp>,
     query_device},
    {IB_USER_VERBS_EX_CMD_QUERY_DEVICE, true, "EX_QUERY_DEVICE",
     extended_form(sizeof(ib_uverbs_ex_query_device), offsetof(ib_uverbs_ex_query_device_resp, odp_caps)),
     query_device_extended},
    {IB_USER_VERBS_CMD_QUERY_PORT, false, "QUERY_PORT", form<ib_uverbs_query_port, ib_uverbs_query_port_resp>,
     query_port},
    {IB_USER_VERBS_CMD_ALLOC_PD, false, "ALLOC_PD", form<ib_uverbs_alloc_pd, ib_uverbs_alloc_pd_resp>, alloc_pd},
    {IB_USER_VERBS_CMD_DEALLOC_PD, false, "DEALLOC_PD", quiet_form<ib_uverbs_dealloc_pd>, dealloc_pd},
    {IB_USER_VERBS_CMD_REG_MR, false, "REG_MR", form<ib_uverbs_reg_mr, ib_uverbs_reg_mr_resp>, reg_mr},
    {IB_USER_VERBS_CMD_REREG_MR, false, "REREG_MR", form<ib_uverbs_rereg_mr, ib_uverbs_rereg_mr_resp>, rereg_mr},
    {IB_USER_VERBS_CMD_DEREG_MR, false, "DEREG_MR", quiet_form<ib_uverbs_dereg_mr>, dereg_mr},
    {IB_USER_VERBS_CMD_ALLOC_MW, false, "ALLOC_MW", form<ib_uverbs_alloc_mw, ib_uverbs_alloc_mw_resp>, alloc_mw},
    {IB_USER_VERBS_CMD_DEALLOC_MW, false, "DEALLOC_MW", quiet_form<ib_uverbs_dealloc_mw>, dealloc_mw},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, false, "CREATE_COMP_CHANNEL",
     form<ib_uverbs_create_comp_channel, ib_uverbs_create_comp_channel_resp>, create_comp_channel},
    {IB_USER_VERBS_CMD_CREATE_CQ, false, "CREATE_CQ", form<ib_uverbs_create_cq, ib_uverbs_create_cq_resp>, create_cq},
    {IB_USER_VERBS_EX_CMD_CREATE_CQ, true, "EX_CREATE_CQ",
     extended_form(sizeof(ib_uverbs_ex_create_cq), sizeof(ib_uverbs_ex_create_cq_resp)), create_cq_extended},
    {IB_USER_VERBS_CMD_RESIZE_CQ, false, "RESIZE_CQ", form<ib_uverbs_resize_cq, ib_uverbs_resize_cq_resp>, resize_cq},
    {IB_USER_VERBS_CMD_DESTROY_CQ, false, "DESTROY_CQ", form<ib_uverbs_destroy_cq, ib_uverbs_destroy_cq_resp>,
     destroy_cq},
    {IB_USER_VERBS_CMD_CREATE_SRQ, false, "CREATE_SRQ", form<ib_uverbs_create_srq, ib_uverbs_create_srq_resp>,
     create_srq},
    {IB_USER_VERBS_CMD_CREATE_XSRQ, false, "CREATE_XSRQ", form<ib_uverbs_create_xsrq, ib_uverbs_create_srq_resp>,
     create_srq_extended},
    {IB_USER_VERBS_CMD_MODIFY_SRQ, false, "MODIFY_SRQ", quiet_form<ib_uverbs_modify_srq>, modify_srq},
    {IB_USER_VERBS_CMD_QUERY_SRQ, false, "QUERY_SRQ", form<ib_uverbs_query_srq, ib_uverbs_query_srq_resp>, query_srq},
    {IB_USER_VERBS_CMD_DESTROY_SRQ, false, "DESTROY_SRQ", form<ib_uverbs_destroy_srq, ib_uverbs_destroy_srq_resp>,
     destroy_srq},
    {IB_USER_VERBS_CMD_CREATE_AH, false, "CREATE_AH", form<ib_uverbs_create_ah, ib_uverbs_create_ah_resp>, create_ah},
    {IB_USER_VERBS_CMD_DESTROY_AH, false, "DESTROY_AH", quiet_form<ib_uverbs_destroy_ah>, destroy_ah},
    {IB_USER_VERBS_CMD_ATTACH_MCAST, false, "ATTACH_MCAST", quiet_form<ib_uverbs_attach_mcast>, attach_mcast},
    {IB_USER_VERBS_CMD_DETACH_MCAST, false, "DETACH_MCAST", quiet_form<ib_uverbs_detach_mcast>, detach_mcast},
    {IB_USER_VERBS_CMD_CREATE_QP, false, "CREATE_QP", form<ib_uverbs_create_qp, ib_uverbs_create_qp_resp>, create_qp},
    {IB_USER_VERBS_EX_CMD_CREATE_QP, true, "EX_CREATE_QP",
     extended_form(offsetof(ib_uverbs_ex_create_qp, create_flags), sizeof(ib_uverbs_ex_create_qp_resp)),
     create_qp_extended},
    {IB_USER_VERBS_CMD_MODIFY_QP, false, "MODIFY_QP", quiet_form<ib_uverbs_modify_qp>, modify_qp},
    {IB_USER_VERBS_CMD_QUERY_QP, false, "QUERY_QP", form<ib_uverbs_query_qp, ib_uverbs_query_qp_resp>, query_qp},
    {IB_USER_VERBS_CMD_DESTROY_QP, false, "DESTROY_QP", form<ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp>,
     destroy_qp},
});

/// Commands of the old form, from number 0.
constexpr auto names = std::to_array<const char*>(
    {"GET_CONTEXT",   "QUERY_DEVICE", "QUERY_PORT", "ALLOC_PD",    "DEALLOC_PD", "CREATE_AH",
     "MODIFY_AH",     "QUERY_AH",     "DESTROY_AH", "REG_MR",      "REG_SMR",    "REREG_MR",
     "QUERY_MR",      "DEREG_MR",     "ALLOC_MW",   "BIND_MW",     "DEALLOC_MW", "CREATE_COMP_CHANNEL",
     "CREATE_CQ",     "RESIZE_CQ",    "DESTROY_CQ", "POLL_CQ",     "PEEK_CQ",    "REQ_NOTIFY_CQ",
     "CREATE_QP",     "QUERY_QP",     "MODIFY_QP",  "DESTROY_QP",  "POST_SEND",  "POST_RECV",
     "ATTACH_MCAST",  "DETACH_MCAST", "CREATE_SRQ", "MODIFY_SRQ",  "QUERY_SRQ",  "DESTROY_SRQ",
     "POST_SRQ_RECV", "OPEN_XRCD",    "CLOSE_XRCD", "CREATE_XSRQ", "OPEN_QP"});

/// Commands that exist in the extended form only.
constexpr auto extended_names =
    std::to_array<const char*>({"CREATE_FLOW", "DESTROY_FLOW", "CREATE_WQ", "MODIFY_WQ", "DESTROY_WQ",
                                "CREATE_RWQ_IND_TBL", "DESTROY_RWQ_IND_TBL", "MODIFY_CQ"});

} // namespace

const command_row* find_command(const call& wanted) noexcept
{
    const auto found = std::ranges::find_if(rows, [&](const command_row& row) {
        return row.number == wanted.command() && row.extended == wanted.extended();
    });
    return found == rows.end() ? nullptr : &*found;
}

std::string name_of_command(const call& wanted)
{
    const std::uint32_t number = wanted.command();
    if (number < names.size())
        return fmt::format("{}{}", wanted.extended() ? "EX_" : "", names[number]);
    const std::uint32_t further = number - IB_USER_VERBS_CMD_THRESHOLD;
    return wanted.extended() && further < extended_names.size() ? fmt::format("EX_{}", extended_names[further])
                                                                : fmt::format("command {}", number);
}

} // namespace weftio::verbs
