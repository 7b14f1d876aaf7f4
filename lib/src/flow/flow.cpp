#include "weftio/flow.hpp"

#include "flow/validate.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio {

struct flow::state {
    std::shared_ptr<nic::soft_port> nic;
    std::vector<std::shared_ptr<nic::steering_rule>> rules; ///< the same for each engine, which counts its own hits

    ~state()
    {
        if (!nic->may_end())
            return;
        nic->engines().between_all_turns([&] {
            for (unsigned engine = 0; engine < rules.size(); ++engine)
                nic->receiver(engine).rules().remove(rules[engine].get());
        });
    }
};

flow::flow(const port& port, const flow_match& match, const flow_action& action, std::uint32_t priority)
{
    detail::validate(match);
    detail::validate(action, port.backend());
    nic::soft_port& nic = port.backend();
    std::vector<std::uint32_t> targets;
    for (const eth_rxq* queue : action.queues)
        targets.push_back(queue->number());
    const std::uint64_t sequence = nic.next_sequence();
    std::vector<std::shared_ptr<nic::steering_rule>> rules;
    for (unsigned engine = 0; engine < nic.engines().count(); ++engine) {
        auto rule = rules.emplace_back(std::make_shared<nic::steering_rule>());
        rule->match = match;
        rule->action = action.what;
        rule->targets = targets;
        rule->key = action.key;
        rule->priority = priority;
        rule->sequence = sequence;
    }
    state_.reset(new state{
        port.share(), std::move(rules)}); // before the rules are in force: nothing has to be undone when this throws
    nic.engines().between_all_turns([&] {
        for (unsigned engine = 0; engine < nic.engines().count(); ++engine)
            nic.receiver(engine).rules().add(state_->rules[engine]);
    });
}

flow::flow(flow&&) noexcept = default;
flow& flow::operator=(flow&&) noexcept = default;
flow::~flow() = default;

flow_hits flow::hits() const
{
    flow_hits hits;
    for (const auto& rule : state_->rules) {
        hits.packets += rule->packets.value();
        hits.bytes += rule->bytes.value();
    }
    return hits;
}

flow_place flow::where() const noexcept
{
    return flow_place::software;
}

} // namespace weftio
