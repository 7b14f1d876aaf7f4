#include "nic/soft/soft_rule.hpp"

namespace weftio::nic {

soft_rule::soft_rule(std::shared_ptr<soft_port> port, const rule_request& wanted) : port_(std::move(port))
{
    const std::uint64_t sequence = port_->next_sequence();
    for (unsigned engine = 0; engine < port_->engine_count(); ++engine) {
        auto each = rules_.emplace_back(std::make_shared<steering_rule>());
        each->match = wanted.match;
        each->action = wanted.action;
        each->targets = wanted.queues;
        each->key = wanted.key;
        each->priority = wanted.priority;
        each->sequence = sequence;
    }
    port_->offloads().add(rules_.front(), [&] { install(); });
}

void soft_rule::install()
{
    port_->engines().between_all_turns([&] {
        try {
            for (unsigned engine = 0; engine < rules_.size(); ++engine)
                port_->receiver(engine).rules().add(rules_[engine]);
        } catch (...) {
            remove();
            throw;
        }
    });
}

soft_rule::~soft_rule()
{
    if (port_->may_end())
        port_->offloads().remove(rules_.front().get(), [&] { port_->engines().between_all_turns([&] { remove(); }); });
}

void soft_rule::remove() noexcept
{
    for (unsigned engine = 0; engine < rules_.size(); ++engine)
        port_->receiver(engine).rules().remove(rules_[engine].get());
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

} // namespace weftio::nic
