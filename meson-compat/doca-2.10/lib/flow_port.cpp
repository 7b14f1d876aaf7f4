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

/// Whether the number is one of a queue of kernels, or of one that the program has set up at its DPDK port.
bool is_known(const doca_dev& dev, std::uint16_t number)
{
    return dev.opened->dpdk->has_queue(number) ||
           living<doca_eth_rxq>::any([&](const std::shared_ptr<doca_eth_rxq>& one) {
               return one->flow_number == number && one->dev->info == dev.info;
           });
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

void forward::require_queues_of(const doca_dev& dev) const
{
    for (const std::uint16_t number : queues)
        require(is_known(dev, number), DOCA_ERROR_INVALID_VALUE,
                "there is no receive queue with number {} at {}; take numbers from doca_eth_rxq_get_flow_queue_id, or "
                "those of rte_eth_rx_queue_setup",
                number, dev.info->pci);
}

std::uint32_t compiled_pipes::take_priority()
{
    constexpr std::uint32_t end = 1u << 31; // the highest bit tells which list a rule is of
    require(next <= end - 2 * step, DOCA_ERROR_FULL, "the pipes are more than {} rules; remove entries", end / step);
    return next += step;
}

void doca_flow_port::compile(compiled_pipes& into, const forward& to, const weftio::flow_match& context,
                             unsigned depth) const
{
    if (to.type == DOCA_FLOW_FWD_PIPE) {
        if (auto next = to.next.lock())
            return compile(into, *next, context, depth + 1);
    }
    into.rules.push_back({context, action_of(*dev, to), into.take_priority()});
}

void doca_flow_port::compile(compiled_pipes& into, const doca_flow_pipe& pipe, const weftio::flow_match& context,
                             unsigned depth) const
{
    require(depth < deepest, DOCA_ERROR_INVALID_VALUE, "pipe \"{}\" leads back to itself", pipe.cfg.name);
    const std::size_t way = into.ways[&pipe].size();
    into.ways[&pipe].push_back({context, into.take_priority()});
    for (const auto& entry : pipe.entries) {
        auto& ranges = into.entries[entry.get()];
        ranges.resize(way + 1);
        if (const auto match = both(context, entry->match)) {
            const std::uint32_t before = into.next;
            const auto& to = entry->fwd ? *entry->fwd : pipe.fwd.value_or(forward{});
            compile(into, to, *match, depth);
            priority_range range{before + compiled_pipes::step, into.next, std::nullopt};
            if (to.type != DOCA_FLOW_FWD_PIPE)
                range.age = into.rules.size();
            into.entries[entry.get()][way] = range;
        }
    }
    into.ways[&pipe][way].miss = into.next + compiled_pipes::step;
    compile(into, pipe.miss, context, depth);
}

/// Keeps rules that have been made, with the ages `age`, `age` + 1 and so on.
void doca_flow_port::keep(std::vector<weftio::flow> made, const std::vector<weftio::flow_rule>& rules,
                          std::uint64_t age)
{
    for (std::size_t at = 0; at < made.size(); ++at)
        flows_.emplace(std::pair(rules[at].priority, age + at), std::move(made[at]));
}

/// From the back: as long as a rule is there, so are all that decide before it.
void doca_flow_port::end_rules()
{
    while (!flows_.empty())
        flows_.erase(std::prev(flows_.end()));
}

void doca_flow_port::replace_rules()
{
    compiled_pipes fresh;
    for (const auto& pipe : pipes_)
        if (pipe->cfg.is_root) {
            compile(fresh, *pipe, {}, 0);
            break; // its miss decides on every packet
        }
    // Of two lists, that without the highest bit decides.
    const std::uint32_t list = list_ ^ 1u << 31;
    for (auto& rule : fresh.rules)
        rule.priority |= list;
    const auto rules = std::exchange(fresh.rules, {});
    auto made = weftio::flow::install(dev->port(), rules);
    end_rules();
    keep(std::move(made), rules, 1);
    age_ = rules.size();
    list_ = list;
    compiled_ = std::move(fresh);
    is_compiled_ = true;
}

/// A priority for entry `at` of the pipe that is behind the entry before it, and before the entry behind it.
std::optional<std::uint32_t> doca_flow_port::free_priority(const doca_flow_pipe& pipe, std::size_t at,
                                                           std::size_t way) const
{
    const auto range_of = [&](std::size_t entry) {
        const auto found = compiled_.entries.find(pipe.entries[entry].get());
        return found == compiled_.entries.end() ? std::nullopt : found->second[way];
    };
    const auto& on = compiled_.ways.at(&pipe)[way];
    std::uint32_t low = on.begin, high = on.miss;
    for (std::size_t before = at; before-- > 0;)
        if (const auto range = range_of(before)) {
            low = range->last;
            break;
        }
    for (std::size_t behind = at + 1; behind < pipe.entries.size(); ++behind)
        if (const auto range = range_of(behind)) {
            high = range->first;
            break;
        }
    if (low >= high)
        return std::nullopt;
    // Of equal priorities the older decides, so that many entries find room behind each other; before each other they
    // take a part of what is left.
    return high - std::max(1u, (high - low) / 16);
}

/// Adds the rules of entry `at` to those in force. Returns false if all must be made anew.
bool doca_flow_port::add_rules(const doca_flow_pipe& pipe, std::size_t at)
{
    const auto& entry = *pipe.entries[at];
    const auto& to = entry.fwd ? *entry.fwd : *pipe.fwd;
    if (!is_compiled_ || to.type == DOCA_FLOW_FWD_PIPE)
        return false;
    const auto ways = compiled_.ways.find(&pipe);
    if (ways == compiled_.ways.end())
        return true; // no packet comes into the pipe
    std::vector<weftio::flow_rule> rules;
    std::vector<std::optional<priority_range>> ranges(ways->second.size());
    for (std::size_t way = 0; way < ranges.size(); ++way)
        if (const auto match = both(ways->second[way].conditions, entry.match)) {
            const auto priority = free_priority(pipe, at, way);
            if (!priority)
                return false;
            ranges[way] = {*priority, *priority, age_ + 1 + rules.size()};
            rules.push_back({*match, action_of(*dev, to), *priority | list_});
        }
    compiled_.entries.emplace(&entry, std::move(ranges));
    try {
        keep(weftio::flow::install(dev->port(), rules), rules, age_ + 1);
    } catch (...) {
        compiled_.entries.erase(&entry);
        throw;
    }
    age_ += rules.size();
    return true;
}

/// Ends the rules of an entry. Returns false if all must be made anew.
bool doca_flow_port::remove_rules(const doca_flow_pipe_entry& entry)
{
    const auto found = compiled_.entries.find(&entry);
    if (!is_compiled_ || found == compiled_.entries.end())
        return is_compiled_; // no packet comes into its pipe
    const auto& ranges = found->second;
    const bool are_own = std::all_of(ranges.begin(), ranges.end(), [](const auto& one) { return !one || one->age; });
    if (are_own)
        for (const auto& range : ranges)
            if (range)
                flows_.erase({range->first | list_, *range->age});
    if (are_own)
        compiled_.entries.erase(found);
    return are_own;
}

void doca_flow_port::add(const std::shared_ptr<doca_flow_pipe>& pipe)
{
    std::lock_guard lock(mutex_);
    const bool has_root = std::any_of(pipes_.begin(), pipes_.end(), [](const auto& one) { return one->cfg.is_root; });
    require(!pipe->cfg.is_root || !has_root, DOCA_ERROR_NOT_SUPPORTED,
            "the port has a root pipe already; a port has one");
    pipes_.push_back(pipe); // no rule yet: a pipe without entries receives nothing
    is_compiled_ &= !pipe->cfg.is_root;
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
    auto behind = std::upper_bound(pipe->entries.begin(), pipe->entries.end(), entry->priority,
                                   [](std::uint32_t priority, const auto& one) { return priority < one->priority; });
    const auto at = static_cast<std::size_t>(behind - pipe->entries.begin());
    pipe->entries.insert(behind, entry);
    try {
        if (!add_rules(*pipe, at))
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
    if (!remove_rules(*entry))
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
    end_rules();
    compiled_ = {};
    is_compiled_ = false;
    for (const auto& pipe : pipes_) {
        for (const auto& entry : pipe->entries)
            living<doca_flow_pipe_entry>::remove(entry.get());
        living<doca_flow_pipe>::remove(pipe.get());
    }
    pipes_.clear();
}
