#include "nic/soft/offloads.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <tuple>

#include "core/log.hpp"
#include "nic/soft/overlap.hpp"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

namespace {

bool decides_before(const steering_rule& a, const steering_rule& b) noexcept
{
    return std::tie(a.priority, a.sequence) < std::tie(b.priority, b.sequence);
}

} // namespace

void offloads::enter(const std::shared_ptr<steering_rule>& rule)
{
    entry added{.rule = rule};
    // Not one by one: many rules are added one at a time.
    if (leftovers_.capacity() < leftovers_.size() + entries_.size() + 1)
        leftovers_.reserve(2 * (leftovers_.size() + entries_.size() + 1)); // for leave(), which must not allocate
    if (entries_.capacity() == entries_.size())
        entries_.reserve(2 * entries_.size() + 1);
    for (entry& each : entries_) {
        if (!may_overlap(rule->match, each.rule->match))
            continue;
        const bool later = decides_before(*rule, *each.rule);
        each.before += later;
        added.before += !later;
    }
    const auto position = std::find_if(entries_.begin(), entries_.end(),
                                       [&](const entry& each) { return decides_before(*rule, *each.rule); });
    entries_.insert(position, std::move(added));
}

void offloads::leave(const steering_rule* rule) noexcept
{
    const auto gone =
        std::find_if(entries_.begin(), entries_.end(), [&](const entry& each) { return each.rule.get() == rule; });
    for (auto later = gone + 1; later != entries_.end(); ++later)
        later->before -= may_overlap(rule->match, later->rule->match);
    if (gone->driver.executes())
        leftovers_.push_back({std::move(gone->rule), std::move(gone->driver)});
    entries_.erase(gone);
}

/// Removes the driver's rules that would take packets of `rule`.
void offloads::make_way_for(const steering_rule& rule)
{
    const auto refuse = [&](const char* why) {
        throw error(
            errc::device_error,
            fmt::format("weftio: flow: the driver of port {} drops packets that the new rule would match, and cannot "
                        "remove its drop rule ({}); make a rule that matches other packets, or open the port again",
                        name_, why));
    };
    for (leftover& each : leftovers_)
        if (may_overlap(rule.match, each.rule->match))
            if (const char* why = end(each.driver))
                refuse(why);
    std::erase_if(leftovers_, [](const leftover& each) { return !each.driver.executes(); });
    for (entry& each : entries_) {
        if (each.before == 0 || !each.driver.executes())
            continue;
        const char* why = end(each.driver);
        publish(each);
        if (why)
            refuse(why);
    }
}

void offloads::end_in_driver(const steering_rule* rule) noexcept
{
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const entry& each) { return each.rule.get() == rule; });
    const char* why = end(found->driver);
    publish(*found);
    if (why)
        core::log_or_lose(log_level::error, [&] {
            return fmt::format("weftio: port {}: the driver cannot remove a rule ({}) and still drops its packets; "
                               "open the port again to receive them",
                               name_, why);
        });
}

/// Removes a rule from the driver; see driver_rule::end(). A driver without its device has no rules any more.
const char* offloads::end(dpdk::driver_rule& driver) const noexcept
{
    if (device_.removed())
        driver.forget();
    const char* why = driver.executes() ? driver.end() : nullptr;
    if (why && rte_eth_dev_is_removed(device_.id()) == 1) {
        driver.forget();
        return nullptr;
    }
    return why;
}

/// Offers every rule to the driver.
void offloads::offer_all() noexcept
{
    for (entry& each : entries_)
        try {
            offer(each);
        } catch (...) { // no memory, or an exception of the log sink: the engines execute the rule
            end(each.driver);
            publish(each);
        }
}

void offloads::offer(entry& each)
{
    if (each.rule->action != flow_kind::drop || each.before != 0 || each.refused || each.driver.executes() ||
        device_.removed())
        return;
    const std::string why = ask_to_execute(each);
    publish(each);
    each.refused = !why.empty();
    if (each.refused && logged_.insert(why).second)
        core::log(log_level::debug,
                  fmt::format("weftio: port {}: the engine executes a drop rule, the driver {} does not: {}", name_,
                              device_.driver(), why));
}

/// Returns why the driver does not execute the rule, or an empty text.
std::string offloads::ask_to_execute(entry& each)
{
    if (device_.stands_before_others())
        return "its member devices come and go, and their counts with them";
    return each.driver.begin(device_.id(), each.rule->match);
}

void offloads::ask_driver(const steering_rule* rule) noexcept
{
    std::scoped_lock lock(mutex_);
    for (entry& each : entries_) {
        if ((rule && each.rule.get() != rule) || !each.driver.executes())
            continue;
        if (device_.removed())
            each.driver.forget();
        each.driver.ask();
        publish(each);
    }
}

void offloads::publish(const entry& each) noexcept
{
    const flow_hits hits = each.driver.hits();
    driver_share& share = each.rule->driver;
    share.packets.store(hits.packets, std::memory_order_relaxed);
    share.bytes.store(hits.bytes, std::memory_order_relaxed);
    share.executes.store(each.driver.executes(), std::memory_order_release);
}

} // namespace weftio::nic::soft
