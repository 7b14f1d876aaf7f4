#include "dpdk/driver_rule.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_flow.h>

#include <algorithm>
#include <array>

namespace weftio::dpdk {

namespace {

constexpr rte_flow_action_count counter{};
constexpr rte_flow_action count_action{.type = RTE_FLOW_ACTION_TYPE_COUNT, .conf = &counter};
constexpr std::array<rte_flow_action, 3> count_and_drop{
    count_action,
    {.type = RTE_FLOW_ACTION_TYPE_DROP, .conf = nullptr},
    {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr},
};

const char* reason(const rte_flow_error& error, int number) noexcept
{
    return error.message ? error.message : rte_strerror(number);
}

void add_to(flow_hits& sum, const flow_hits& more) noexcept
{
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}

} // namespace

std::string driver_rule::begin(std::uint16_t port, const flow_match& match)
{
    port_ = port;
    const flow_patterns patterns = to_patterns(match);
    if (patterns.all.empty())
        return patterns.why_none;
    parts_.reserve(patterns.all.size());
    std::string why;
    for (auto pattern = patterns.all.begin(); pattern != patterns.all.end() && why.empty(); ++pattern)
        why = add(*pattern);
    if (!why.empty())
        end();
    return why;
}

std::string driver_rule::add(const flow_pattern& pattern)
{
    rte_flow_attr ingress{};
    ingress.ingress = 1;
    rte_flow_error error{};
    const auto items = pattern.items();
    if (int result = rte_flow_validate(port_, &ingress, items.data(), count_and_drop.data(), &error); result != 0)
        return fmt::format("it rejects the rule: {}", reason(error, -result));
    error = {};
    rte_flow* flow = rte_flow_create(port_, &ingress, items.data(), count_and_drop.data(), &error);
    if (!flow)
        return fmt::format("it cannot create the rule: {}", reason(error, rte_errno));
    parts_.push_back({flow, {}});
    return ask(parts_.back()) ? "" : "it does not report how many packets and bytes it has dropped";
}

/// Returns whether the driver has told packets and bytes.
bool driver_rule::ask(part& part) const noexcept
{
    rte_flow_query_count count{};
    rte_flow_error error{};
    if (rte_flow_query(port_, part.flow, &count_action, &count, &error) != 0 || !count.hits_set || !count.bytes_set)
        return false;
    part.seen = {.packets = std::max(part.seen.packets, count.hits), .bytes = std::max(part.seen.bytes, count.bytes)};
    return true;
}

void driver_rule::ask() noexcept
{
    for (part& each : parts_)
        ask(each);
}

flow_hits driver_rule::hits() const noexcept
{
    flow_hits sum = ended_;
    for (const part& each : parts_)
        add_to(sum, each.seen);
    return sum;
}

const char* driver_rule::end() noexcept
{
    const char* why = nullptr;
    std::erase_if(parts_, [&](part& each) {
        ask(each);
        rte_flow_error error{};
        if (int result = rte_flow_destroy(port_, each.flow, &error); result != 0) {
            why = reason(error, -result);
            return false;
        }
        add_to(ended_, each.seen);
        return true;
    });
    return why;
}

void driver_rule::forget() noexcept
{
    ended_ = hits();
    parts_.clear();
}

} // namespace weftio::dpdk
