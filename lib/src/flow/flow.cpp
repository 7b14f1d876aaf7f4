#include "weftio/flow.hpp"

#include "flow/validate.hpp"
#include "nic/backend.hpp"

namespace weftio {

struct flow::state {
    std::unique_ptr<nic::rule> rule;
};

flow::flow(const port& port, const flow_match& match, const flow_action& action, std::uint32_t priority)
{
    detail::validate(match);
    detail::validate(action, port.backend());
    nic::rule_request wanted{
        .match = match, .action = action.what, .queues = {}, .key = action.key, .priority = priority};
    for (const eth_rxq* queue : action.queues)
        wanted.queues.push_back(queue->number());
    state_.reset(new state{port.backend().install(wanted)});
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
