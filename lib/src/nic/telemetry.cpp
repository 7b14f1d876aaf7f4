#include "nic/telemetry.hpp"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/telemetry.hpp"
#include "nic/soft_port.hpp"

namespace weftio::nic {

namespace {

using detail::nest;

std::mutex mutex;
std::vector<soft_port*> ports; ///< guarded by mutex

void add(rte_tel_data* dict, const char* name, std::uint64_t value)
{
    rte_tel_data_add_dict_u64(dict, name, value);
}

void fill_port(soft_port& port, rte_tel_data* dict)
{
    port_counters counters = port.counters();
    rte_tel_data_add_dict_string(dict, "spec", port.spec().c_str());
    rte_tel_data_add_dict_string(dict, "driver", port.device().driver().c_str());
    add(dict, "received", counters.received);
    add(dict, "received_bytes", counters.received_bytes);
    add(dict, "delivered", counters.delivered);
    add(dict, "held", counters.held);
    add(dict, "driver_missed", counters.driver_missed);
    add(dict, "copied_bytes", counters.copied_bytes);
    for (std::size_t reason = 0; reason < counters.dropped.size(); ++reason)
        add(dict, fmt::format("dropped_{}", to_string(static_cast<drop_reason>(reason))).c_str(), counters.dropped[reason]);
}

/// Runs `look` between two turns of each engine, one after the other. A queue that moves meanwhile may be shown twice, or not
/// at all.
template <class Look>
void in_every_engine(soft_port& port, Look&& look)
{
    for (unsigned engine = 0; engine < port.engines().count(); ++engine)
        port.engine(engine).between_turns([&] { look(engine); });
}

void fill_rx(soft_port& port, rte_tel_data* dict)
{
    in_every_engine(port, [&](unsigned engine) {
        receiver& receiver = port.receiver(engine);
        for (std::uint32_t number = 0; number < receiver.queues(); ++number)
            if (const rx_queue* queue = receiver.find(number))
                nest(dict, std::to_string(number), [&](rte_tel_data* inner) {
                    add(inner, "engine", engine);
                    add(inner, "packets", queue->ring().depth);
                    add(inner, "delivered", queue->delivered.value());
                    add(inner, "delivered_bytes", queue->delivered_bytes.value());
                    add(inner, "out_of_buffer", queue->all_out_of_buffer());
                    add(inner, "too_long", queue->too_long.value());
                    add(inner, "flushed", queue->flushed.value());
                });
    });
}

void fill_tx(soft_port& port, rte_tel_data* dict)
{
    in_every_engine(port, [&](unsigned engine) {
        sender& sender = port.sender(engine);
        for (std::uint32_t number = 1; number <= sender.queues(); ++number)
            if (tx_queue* queue = sender.find(number))
                nest(dict, std::to_string(number), [&](rte_tel_data* inner) {
                    add(inner, "engine", engine);
                    const pacing& schedule = queue->schedule();
                    add(inner, "enqueued", queue->enqueued.value());
                    add(inner, "sent", queue->sent.value());
                    add(inner, "sent_bytes", queue->sent_bytes.value());
                    add(inner, "waited", queue->waited.value());
                    add(inner, "failed", queue->failed_entries.value());
                    add(inner, "flushed", queue->flushed.value());
                    add(inner, "copied_bytes", queue->copied_bytes.value());
                    add(inner, "tx_pp_timestamp_past_errors", schedule.past_errors.value());
                    add(inner, "tx_pp_timestamp_future_errors", schedule.future_errors.value());
                    add(inner, "tx_pp_timestamp_order_errors", schedule.order_errors.value());
                    add(inner, "schedule_error_p50_ns", schedule.error.quantile_ns(0.5));
                    add(inner, "schedule_error_p99_ns", schedule.error.quantile_ns(0.99));
                    add(inner, "schedule_error_max_ns", schedule.error.max_ns());
                });
    });
}

void fill_flows(soft_port& port, rte_tel_data* dict)
{
    port.engines().between_all_turns([&] {
        std::vector<std::vector<std::shared_ptr<const steering_rule>>> rules; // each engine has the same
        for (unsigned engine = 0; engine < port.engines().count(); ++engine)
            rules.push_back(port.receiver(engine).rules().all());
        for (std::size_t number = 0; number < rules[0].size(); ++number)
            nest(dict, std::to_string(number), [&](rte_tel_data* inner) {
                std::uint64_t packets = 0, bytes = 0;
                for (const auto& of_engine : rules) {
                    packets += of_engine[number]->packets.value();
                    bytes += of_engine[number]->bytes.value();
                }
                add(inner, "priority", rules[0][number]->priority);
                add(inner, "packets", packets);
                add(inner, "bytes", bytes);
            });
    });
}

int list_ports(const char*, const char*, rte_tel_data* data) noexcept
try {
    std::scoped_lock lock(mutex);
    rte_tel_data_start_dict(data);
    for (const soft_port* port : ports)
        rte_tel_data_add_dict_string(data, std::to_string(port->device().id()).c_str(), port->spec().c_str());
    return 0;
} catch (const std::exception&) { // no memory for an answer
    return -1;
}

/// The port that `parameters` names by its DPDK number, or nullptr. @pre mutex is held
soft_port* named(const char* parameters)
{
    unsigned id = 0;
    const char* end = parameters ? parameters + std::strlen(parameters) : nullptr;
    if (!parameters || std::from_chars(parameters, end, id) != std::from_chars_result{end, std::errc{}})
        return nullptr;
    auto found = std::find_if(ports.begin(), ports.end(), [&](const soft_port* port) { return port->device().id() == id; });
    return found == ports.end() ? nullptr : *found;
}

template <void (*Fill)(soft_port&, rte_tel_data*)>
int answer(const char*, const char* parameters, rte_tel_data* data) noexcept
try {
    std::scoped_lock lock(mutex);
    soft_port* port = named(parameters);
    if (!port)
        return -1;
    rte_tel_data_start_dict(data);
    Fill(*port, data);
    return 0;
} catch (const std::exception&) { // no memory for an answer
    return -1;
}

void register_commands()
{
    static const bool once = [] {
        rte_telemetry_register_cmd("/weftio/ports", list_ports, "Open Weftio ports: DPDK number and spec. No parameters.");
        rte_telemetry_register_cmd("/weftio/port", answer<fill_port>,
                                   "Counters and drop reasons of a port. Parameter: its number.");
        rte_telemetry_register_cmd("/weftio/eth_rxq", answer<fill_rx>,
                                   "Counters of a port's receive queues. Parameter: its number.");
        rte_telemetry_register_cmd("/weftio/eth_txq", answer<fill_tx>,
                                   "Counters of a port's send queues. Parameter: its number.");
        rte_telemetry_register_cmd("/weftio/flow", answer<fill_flows>,
                                   "Hits of a port's rules, first to decide first. Parameter: its number.");
        return true;
    }();
    static_cast<void>(once);
}

} // namespace

telemetry_entry::telemetry_entry(soft_port& port) : port_(port)
{
    register_commands();
    std::scoped_lock lock(mutex);
    ports.push_back(&port);
}

telemetry_entry::~telemetry_entry()
{
    std::scoped_lock lock(mutex);
    std::erase(ports, &port_);
}

} // namespace weftio::nic
