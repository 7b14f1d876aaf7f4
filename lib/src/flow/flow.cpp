#include "weftio/flow.hpp"

#include "flow/validate.hpp"
#include "nic/soft_port.hpp"

namespace weftio {

struct flow::state {
    std::shared_ptr<nic::soft_port> nic;
    std::shared_ptr<nic::steering_rule> rule;

    ~state()
    {
        nic->engine().between_turns([&] { nic->receiver().rules().remove(rule.get()); });
    }
};

flow::flow(const port& port, const flow_match& match, const flow_action& action, std::uint32_t priority)
{
    detail::validate(match);
    detail::validate(action, port.backend());
    auto rule = std::make_shared<nic::steering_rule>();
    rule->match = match;
    rule->action = action.what;
    for (const eth_rxq* queue : action.queues)
        rule->targets.push_back(queue->number());
    rule->key = action.key;
    rule->priority = priority;
    rule->sequence = port.backend().next_sequence();
    state_.reset(new state{port.share(), rule}); // before the rule is in force: nothing has to be undone when this throws
    port.backend().engine().between_turns([&] { port.backend().receiver().rules().add(rule); });
}

flow::flow(flow&&) noexcept = default;
flow& flow::operator=(flow&&) noexcept = default;
flow::~flow() = default;

flow_hits flow::hits() const
{
    return {.packets = state_->rule->packets.value(), .bytes = state_->rule->bytes.value()};
}

flow_place flow::where() const noexcept
{
    return flow_place::software;
}

} // namespace weftio
