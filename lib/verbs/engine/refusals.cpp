#include "refusals.hpp"

#include <fmt/format.h>

#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "core/log.hpp"
#include "core/undying.hpp"

namespace weftio::verbs {

namespace {

struct logged_refusals {
    std::mutex mutex;
    std::set<std::pair<log_level, std::string>> lines;
};

/// Whether a line is logged for the first time at this level.
bool is_new(log_level level, const std::string& line)
{
    auto& logged = core::undying<logged_refusals>();
    const std::scoped_lock lock(logged.mutex);
    return logged.lines.emplace(level, line).second;
}

unsupported extended_refusal_of(std::uint32_t number) noexcept
{
    switch (number) {
        case IB_USER_VERBS_EX_CMD_MODIFY_QP: return {"the device has no rate limits"};
        case IB_USER_VERBS_EX_CMD_CREATE_FLOW:
        case IB_USER_VERBS_EX_CMD_DESTROY_FLOW: return {"the device has no flow steering"};
        case IB_USER_VERBS_EX_CMD_CREATE_WQ:
        case IB_USER_VERBS_EX_CMD_MODIFY_WQ:
        case IB_USER_VERBS_EX_CMD_DESTROY_WQ:
        case IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL:
        case IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL: return {"the device has no work queues (RSS)"};
        case IB_USER_VERBS_EX_CMD_MODIFY_CQ: return {"the device has no moderation of completions"};
        default: return {"the device does not know this command"};
    }
}

} // namespace

unsupported refusal_of(const call& what) noexcept
{
    if (what.extended())
        return extended_refusal_of(what.command());
    switch (what.command()) {
        case IB_USER_VERBS_CMD_CREATE_SRQ:
        case IB_USER_VERBS_CMD_MODIFY_SRQ:
        case IB_USER_VERBS_CMD_QUERY_SRQ:
        case IB_USER_VERBS_CMD_DESTROY_SRQ:
        case IB_USER_VERBS_CMD_CREATE_XSRQ: return {"the device has no shared receive queues"};
        case IB_USER_VERBS_CMD_OPEN_XRCD:
        case IB_USER_VERBS_CMD_CLOSE_XRCD:
        case IB_USER_VERBS_CMD_OPEN_QP: return {"the device has no XRC"};
        default: return {"the device does not know this command"};
    }
}

void tell_refused(std::string_view command, const unsupported& why) noexcept
try {
    const char* const name = strerrorname_np(why.number);
    const std::string line =
        fmt::format("weftio-run: {}: {}: {} (docs/verbs.md#refused-calls)", command, name ? name : "error", why.reason);
    core::log(is_new(why.level, line) ? why.level : log_level::debug, line);
} catch (...) { // no memory, or an exception of the sink: the program goes on
}

void tell_other_interface(std::string_view which, bool probe) noexcept
{
    const log_level level = probe ? log_level::info : log_level::warning;
    if (which.starts_with("umad") || which.starts_with("issm"))
        tell_refused("open /dev/infiniband/umad", {"there are no management datagrams", level, ENOENT});
    else if (which == "netlink")
        tell_refused("socket NETLINK_RDMA", {"devices are described in /sys only", level, EPROTONOSUPPORT});
}

} // namespace weftio::verbs
