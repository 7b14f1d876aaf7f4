#include "nic/soft/engines.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weftio::nic::soft {

engines::engine_units::engine_units(const engine_supplies::engine_queue& queue, const engine_supplies& supplies,
                                    const keys::nic_keys& keys, send_pool& pool, roce_directory& directory,
                                    turn_rounds& rounds, bool rdma_by_packet, const std::string& name)
    : sender(queue.port_queue, keys, pool), receiver(queue.port_queue, queue.pool, supplies.hold, supplies.capture),
      rdma(queue.port_queue, keys, receiver, directory, rounds, rdma_by_packet),
      link(queue.port_queue.port, supplies.interface, queue.port_queue.hook, name, {&sender, &receiver, &rdma})
{}

engines::engines(const engine_supplies& supplies, const keys::nic_keys& keys, send_pool& pool,
                 const port_options& options)
    : directory_(supplies.slot)
{
    auto name_of = [&](std::size_t number) {
        return number == 0 ? supplies.name : fmt::format("{}.{}", supplies.name, number);
    };
    for (const engine_supplies::engine_queue& queue : supplies.queues)
        units_.emplace_back(queue, supplies, keys, pool, directory_, rounds_, options.rdma_by_packet,
                            name_of(units_.size()));
    if (units_.size() > 1)
        for (engine_units& units : units_) {
            units.receiver.open_inbox();
            units.rdma.arrivals().open_inbox();
        }
    port_options each = options;
    for (engine_units& units : units_) {
        engines_.emplace_back(
            std::vector<unit*>{&units.link, &units.receiver, &units.rdma, &units.sender, &units.completions}, each,
            name_of(engines_.size()));
        each.core += each.core >= 0;
    }
    note_rounds();
    enter();
}

void engines::note_rounds()
{
    if (count() == 1)
        return;
    between_all_turns([&] {
        for (nic::soft::engine& each : engines_) {
            rounds_.add([&each](std::uint64_t round) { return each.has_passed(round); });
            each.note_rounds(rounds_);
        }
    });
}

bool engines::stand_still() noexcept
{
    return std::all_of(engines_.begin(), engines_.end(), [](nic::soft::engine& engine) { return engine.stop_turns(); });
}

void engines::last_turns()
{
    for (nic::soft::engine& engine : engines_)
        engine.last_turn();
}

unsigned engines::turn()
{
    unsigned moved = 0;
    for (nic::soft::engine& engine : engines_)
        moved += engine.turn();
    return moved;
}

/// Stops the engines `first` .. count() - 1 between two turns, one after the other, and then runs `change`. The first
/// engine waits for its fair share of time; the others stop at once, because the first stands still meanwhile.
void engines::carry_out_from(unsigned first, const std::function<void()>& change)
{
    if (first == count())
        return change();
    engines_[first].between_turns([&] { carry_out_from(first + 1, change); },
                                  first == 0 ? engine::pace::fair : engine::pace::at_once);
}

std::uint32_t engines::add_rx(unsigned engine, const rx_ring& ring)
{
    const std::uint32_t number = units_[engine].receiver.free_number();
    for (engine_units& units : units_)
        units.receiver.reserve(number); // first, because it may throw
    nic::soft::receiver& owner = units_[engine].receiver;
    owner.add(number, ring);
    for (engine_units& units : units_)
        if (&units.receiver != &owner)
            units.receiver.refer(number, owner);
    return number;
}

void engines::remove_rx(unsigned engine, std::uint32_t number) noexcept
{
    for (engine_units& units : units_)
        if (&units != &units_[engine])
            units.receiver.forget(number);
    units_[engine].receiver.remove(number);
}

std::uint32_t engines::add_tx(unsigned engine, const tx_ring& ring)
{
    std::uint32_t number = 1;
    while (std::any_of(units_.begin(), units_.end(),
                       [&](const engine_units& units) { return units.sender.find(number) != nullptr; }))
        ++number;
    units_[engine].sender.add(number, ring);
    return number;
}

bool engines::move_rx(std::uint32_t number, unsigned from, unsigned to)
{
    nic::soft::receiver &source = units_[from].receiver, &target = units_[to].receiver;
    if (!source.hand_on(number, target))
        return false;
    target.take_up(number, source.give_up(number));
    for (engine_units& units : units_)
        if (&units.receiver != &target)
            units.receiver.refer(number, target);
    return true;
}

void engines::move_tx(std::uint32_t number, unsigned from, unsigned to)
{
    units_[to].sender.reserve(number, units_[from].sender.queue(number).ring()); // first, because it may throw
    units_[to].sender.take_up(number, units_[from].sender.give_up(number));
}

unsigned engines::emptiest_rx() const noexcept
{
    auto fewer = [](const engine_units& a, const engine_units& b) { return a.receiver.in_use() < b.receiver.in_use(); };
    return static_cast<unsigned>(std::min_element(units_.begin(), units_.end(), fewer) - units_.begin());
}

unsigned engines::emptiest_tx() const noexcept
{
    auto fewer = [](const engine_units& a, const engine_units& b) { return a.sender.in_use() < b.sender.in_use(); };
    return static_cast<unsigned>(std::min_element(units_.begin(), units_.end(), fewer) - units_.begin());
}

void engines::count(port_counters& counters)
{
    between_all_turns([&] {
        for (engine_units& units : units_)
            units.receiver.count(counters);
    });
}

bool engines::gone() const noexcept
{
    return std::any_of(units_.begin(), units_.end(), [](const engine_units& units) { return units.link.gone(); });
}

} // namespace weftio::nic::soft
