// The list of rules of a port: what a packet meets on its way through the pipes, in the order in which it decides.
#include <algorithm>

#include "eth_rxq.hpp"
#include "flow.hpp"

using namespace weftio::doca;

namespace {

constexpr unsigned deepest = 32; ///< pipes that a packet passes through

/// The queue with this number, of kernels or of the program's DPDK port; nullptr if it was destroyed or stopped.
const weftio::eth_rxq* queue_of(const doca_dev& dev, std::uint16_t number)
{
    if (const auto* queue = dev.opened->dpdk->queue(number))
        return queue;
    const weftio::eth_rxq* queue = nullptr;
    living<doca_eth_rxq>::any([&](const std::shared_ptr<doca_eth_rxq>& one) {
        if (one->flow_number == number && one->is_receiving)
            queue = &*one->queue;
        return queue != nullptr;
    });
    return queue;
}

weftio::flow_action action_of(const doca_dev& dev, const forward& to)
{
    std::vector<const weftio::eth_rxq*> queues;
    if (to.type == DOCA_FLOW_FWD_RSS)
        for (const std::uint16_t number : to.queues)
            if (const auto* queue = queue_of(dev, number))
                queues.push_back(queue);
    if (queues.empty())
        return weftio::flow_action::drop();
    return queues.size() == 1 ? weftio::flow_action::to(*queues.front()) : weftio::flow_action::rss(std::move(queues));
}

} // namespace

void doca_flow_port::compile(const forward& to, const weftio::flow_match& context, unsigned depth)
{
    if (to.type == DOCA_FLOW_FWD_PIPE) {
        if (auto next = to.next.lock())
            return compile(*next, context, depth + 1);
    }
    rules_.push_back({context, action_of(*dev, to), priority_ ^ 1});
}

void doca_flow_port::compile(const doca_flow_pipe& pipe, const weftio::flow_match& context, unsigned depth)
{
    require(depth < deepest, DOCA_ERROR_INVALID_VALUE, "pipe \"{}\" leads back to itself", pipe.cfg.name);
    for (const auto& entry : pipe.entries)
        if (const auto match = both(context, entry->match))
            compile(entry->fwd ? *entry->fwd : pipe.fwd.value_or(forward{}), *match, depth);
    compile(pipe.miss, context, depth);
}

void doca_flow_port::replace_rules()
{
    rules_.clear();
    for (const auto& pipe : pipes_)
        if (pipe->cfg.is_root) {
            compile(*pipe, {}, 0);
            break; // its miss decides on every packet
        }
    // Of two lists with priorities 0 and 1, that with 0 decides. The old list ends from its back: as long as a rule of
    // it is there, so are all that decide before it.
    auto fresh = weftio::flow::install(dev->port(), rules_);
    while (!flows_.empty())
        flows_.pop_back();
    flows_ = std::move(fresh);
    priority_ ^= 1;
}

void doca_flow_port::add(const std::shared_ptr<doca_flow_pipe>& pipe)
{
    std::lock_guard lock(mutex_);
    const bool has_root = std::any_of(pipes_.begin(), pipes_.end(), [](const auto& one) { return one->cfg.is_root; });
    require(!pipe->cfg.is_root || !has_root, DOCA_ERROR_NOT_SUPPORTED,
            "the port has a root pipe already; a port has one");
    pipes_.push_back(pipe); // no rule yet: a pipe without entries receives nothing
}

void doca_flow_port::remove(const std::shared_ptr<doca_flow_pipe>& pipe)
{
    std::lock_guard lock(mutex_);
    std::erase(pipes_, pipe);
    for (const auto& entry : pipe->entries)
        living<doca_flow_pipe_entry>::remove(entry.get());
    pipe->entries.clear();
    replace_rules();
}

void doca_flow_port::add(const std::shared_ptr<doca_flow_pipe>& pipe,
                         const std::shared_ptr<doca_flow_pipe_entry>& entry)
{
    std::lock_guard lock(mutex_);
    auto behind = std::find_if(pipe->entries.begin(), pipe->entries.end(),
                               [&](const auto& one) { return one->priority > entry->priority; });
    pipe->entries.insert(behind, entry);
    try {
        replace_rules();
    } catch (...) {
        std::erase(pipe->entries, entry);
        throw;
    }
}

void doca_flow_port::remove(const std::shared_ptr<doca_flow_pipe>& pipe,
                            const std::shared_ptr<doca_flow_pipe_entry>& entry)
{
    std::lock_guard lock(mutex_);
    std::erase(pipe->entries, entry);
    replace_rules();
}

void doca_flow_port::refresh()
{
    std::lock_guard lock(mutex_);
    replace_rules();
}

void weftio::doca::refresh_rules()
{
    living<doca_flow_port>::any([](const std::shared_ptr<doca_flow_port>& port) {
        port->refresh();
        return false;
    });
}

void doca_flow_port::stop()
{
    std::lock_guard lock(mutex_);
    while (!flows_.empty())
        flows_.pop_back();
    for (const auto& pipe : pipes_) {
        for (const auto& entry : pipe->entries)
            living<doca_flow_pipe_entry>::remove(entry.get());
        living<doca_flow_pipe>::remove(pipe.get());
    }
    pipes_.clear();
}
