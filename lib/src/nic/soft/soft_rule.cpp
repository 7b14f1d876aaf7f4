#include "nic/soft/soft_rule.hpp"

namespace weftio::nic::soft {

soft_rule::soft_rule(soft_port& port, const rule_request& wanted)
{
    const std::uint64_t sequence = port.next_sequence();
    for (unsigned engine = 0; engine < port.engine_count(); ++engine) {
        auto each = rules_.emplace_back(std::make_shared<steering_rule>());
        each->match = wanted.match;
        each->action = wanted.action;
        each->targets = wanted.queues;
        each->key = wanted.key;
        each->priority = wanted.priority;
        each->sequence = sequence;
    }
}

std::vector<std::unique_ptr<rule>> soft_rule::install(const std::shared_ptr<soft_port>& port,
                                                      std::span<const rule_request> wanted)
{
    std::vector<std::unique_ptr<rule>> made;
    std::vector<soft_rule*> rules;
    std::vector<std::shared_ptr<steering_rule>> first_copies;
    made.reserve(wanted.size());
    rules.reserve(wanted.size());
    for (const rule_request& each : wanted) {
        rules.push_back(new soft_rule(*port, each));
        made.emplace_back(rules.back());
        first_copies.push_back(rules.back()->rules_.front());
    }
    port->offloads().add(first_copies, [&] { add_to_engines(*port, rules); });
    for (soft_rule* each : rules)
        each->port_ = port;
    return made;
}

void soft_rule::add_to_engines(soft_port& port, std::span<soft_rule* const> rules)
{
    port.engines().between_all_turns([&] {
        try {
            for (const soft_rule* each : rules)
                for (unsigned engine = 0; engine < each->rules_.size(); ++engine)
                    port.receiver(engine).rules().add(each->rules_[engine]);
        } catch (...) {
            for (const soft_rule* each : rules)
                each->remove_from(port);
            throw;
        }
    });
}

soft_rule::~soft_rule()
{
    if (port_ && port_->may_end())
        port_->offloads().remove(rules_.front().get(),
                                 [&] { port_->engines().between_all_turns([&] { remove_from(*port_); }); });
}

void soft_rule::remove_from(soft_port& port) const noexcept
{
    for (unsigned engine = 0; engine < rules_.size(); ++engine)
        port.receiver(engine).rules().remove(rules_[engine].get());
}

flow_hits soft_rule::hits() const
{
    const driver_share& driver = rules_.front()->driver;
    if (driver.executes.load(std::memory_order_acquire))
        port_->offloads().ask_driver(rules_.front().get());
    flow_hits hits{.packets = driver.packets, .bytes = driver.bytes};
    for (const auto& each : rules_) {
        hits.packets += each->packets.value();
        hits.bytes += each->bytes.value();
    }
    return hits;
}

flow_place soft_rule::where() const noexcept
{
    return rules_.front()->driver.executes ? flow_place::driver : flow_place::software;
}

} // namespace weftio::nic::soft
