#include "weftio/flow.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "flows/validate.hpp"
#include "nic/backend.hpp"

namespace weftio {

namespace {

/// Checks a rule, and says it as a NIC wants it. @param who  the rule, for the error text
nic::rule_request request(const std::string& who, const flow_rule& rule, const nic::backend& port)
{
    flows::validate(who, rule.match);
    flows::validate(who, rule.action, port);
    nic::rule_request wanted{.match = rule.match,
                             .action = rule.action.what,
                             .queues = {},
                             .key = rule.action.key,
                             .priority = rule.priority};
    for (const eth_rxq* queue : rule.action.queues)
        wanted.queues.push_back(queue->number());
    return wanted;
}

} // namespace

struct flow::state {
    std::unique_ptr<nic::rule> rule;
};

flow::flow(std::unique_ptr<state> state) noexcept : state_(std::move(state)) {}

flow::flow(const port& port, const flow_match& match, const flow_action& action, std::uint32_t priority)
    : flow(std::move(install(port, {{match, action, priority}}).front()))
{}

std::vector<flow> flow::install(const port& port, const std::vector<flow_rule>& rules)
{
    std::vector<nic::rule_request> wanted;
    for (const flow_rule& rule : rules)
        wanted.push_back(request(rules.size() == 1
                                     ? "weftio: flow"
                                     : fmt::format("weftio: flow: rule {} of {}", wanted.size() + 1, rules.size()),
                                 rule, detail::internals::backend(port)));
    std::vector<flow> flows;
    while (flows.size() != rules.size())
        flows.push_back(flow(std::make_unique<state>()));
    std::vector<std::unique_ptr<nic::rule>> made =
        detail::internals::backend(port).install(wanted); // nothing fails from here on
    for (std::size_t at = 0; at != made.size(); ++at)
        flows[at].state_->rule = std::move(made[at]);
    return flows;
}

flow::flow(flow&&) noexcept = default;
flow& flow::operator=(flow&&) noexcept = default;
flow::~flow() = default;

flow_hits flow::hits() const
{
    return state_->rule->hits();
}

flow_place flow::where() const noexcept
{
    return state_->rule->where();
}

} // namespace weftio
