#include "nic/soft/telemetry.hpp"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/telemetry.hpp"
#include "core/undying.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

namespace {

using core::put;
using core::telemetry_page;

struct all_ports {
    std::mutex mutex;
    std::vector<soft_port*> ports;
};

constexpr std::pair<const char*, core::counter roce_arrivals::*> rdma_results[] = {
    {"rdma_received", &roce_arrivals::claimed},
    {"rdma_neighbor", &roce_arrivals::neighbor},
    {"rdma_delivered", &roce_arrivals::delivered},
    {"rdma_malformed", &roce_arrivals::malformed},
    {"rdma_wrong_ip_checksum", &roce_arrivals::wrong_ip_checksum},
    {"rdma_wrong_udp_checksum", &roce_arrivals::wrong_udp_checksum},
    {"rx_icrc_encapsulated", &roce_arrivals::rx_icrc_encapsulated},
    {"rdma_for_nobody", &roce_arrivals::for_nobody},
    {"rdma_not_from_peer", &roce_arrivals::not_from_peer},
    {"rdma_other_mac", &roce_arrivals::other_mac},
    {"rdma_congestion", &roce_arrivals::congestion},
    {"rdma_inbox_full", &roce_arrivals::inbox_full},
};

/// Packets to and from queue pairs, of all engines. Counters with a name of mlx5 or rxe count the same as there.
void fill_rdma_packets(soft_port& port, rte_tel_data* dict)
{
    const auto sum = [&](auto&& of) {
        std::uint64_t all = 0;
        for (unsigned engine = 0; engine != port.engine_count(); ++engine)
            all += of(port.rdma(engine)).value();
        return all;
    };
    const std::uint64_t copied = sum([](const rdma_unit& unit) -> auto& { return unit.sent().copied; });
    for (const auto& [name, counter] : rdma_results) {
        const bool counts_copies = counter == &roce_arrivals::claimed || counter == &roce_arrivals::delivered;
        put(dict, name, sum([which = counter](const rdma_unit& unit) -> auto& {
                            return unit.arrivals().*which;
                        }) + (counts_copies ? copied : 0));
    }
    put(dict, "rdma_sent", sum([](const rdma_unit& unit) -> auto& { return unit.sent().sent; }));
    put(dict, "rdma_sent_bytes", sum([](const rdma_unit& unit) -> auto& { return unit.sent().sent_bytes; }));
}

void fill_port(soft_port& port, rte_tel_data* dict)
{
    port_counters counters = port.counters();
    rte_tel_data_add_dict_string(dict, "spec", port.spec().c_str());
    rte_tel_data_add_dict_string(dict, "driver", port.device().driver().c_str());
    put(dict, "received", counters.received);
    put(dict, "received_bytes", counters.received_bytes);
    put(dict, "delivered", counters.delivered);
    put(dict, "held", counters.held);
    put(dict, "driver_missed", counters.driver_missed);
    put(dict, "tx_dropped", counters.tx_dropped);
    put(dict, "copied_bytes", counters.copied_bytes);
    for (std::size_t reason = 0; reason < counters.dropped.size(); ++reason)
        put(dict, fmt::format("dropped_{}", to_string(static_cast<drop_reason>(reason))).c_str(),
            counters.dropped[reason]);
    fill_rdma_packets(port, dict);
}

/// Runs `visit` between two turns of each engine, one engine after the other. A queue that moves meanwhile may be shown
/// twice, or not at all.
template <class Visit>
void in_every_engine(soft_port& port, Visit&& visit)
{
    for (unsigned engine = 0; engine < port.engines().count(); ++engine)
        port.engine(engine).between_turns([&] { visit(engine); });
}

void fill_rx(soft_port& port, telemetry_page& page)
{
    in_every_engine(port, [&](unsigned engine) {
        receiver& receiver = port.receiver(engine);
        for (std::uint32_t number = 0; number < receiver.queues(); ++number)
            if (const rx_queue* queue = receiver.find(number))
                page.row(number, [&](rte_tel_data* inner) {
                    put(inner, "engine", engine);
                    put(inner, "packets", queue->ring().depth);
                    put(inner, "delivered", queue->delivered.value());
                    put(inner, "delivered_bytes", queue->delivered_bytes.value());
                    put(inner, "out_of_buffer", queue->all_out_of_buffer());
                    put(inner, "too_long", queue->too_long.value());
                    put(inner, "flushed", queue->flushed.value());
                });
    });
}

void fill_tx(soft_port& port, telemetry_page& page)
{
    in_every_engine(port, [&](unsigned engine) {
        sender& sender = port.sender(engine);
        for (std::uint32_t number = 1; number <= sender.queues(); ++number)
            if (tx_queue* queue = sender.find(number))
                page.row(number, [&](rte_tel_data* inner) {
                    put(inner, "engine", engine);
                    const pacing& schedule = queue->schedule();
                    put(inner, "enqueued", queue->enqueued.value());
                    put(inner, "sent", queue->sent.value());
                    put(inner, "sent_bytes", queue->sent_bytes.value());
                    put(inner, "waited", queue->waited.value());
                    put(inner, "failed", queue->failed_entries.value());
                    put(inner, "flushed", queue->flushed.value());
                    put(inner, "copied_bytes", queue->copied_bytes.value());
                    put(inner, "tx_pp_timestamp_past_errors", schedule.past_errors.value());
                    put(inner, "tx_pp_timestamp_future_errors", schedule.future_errors.value());
                    put(inner, "tx_pp_timestamp_order_errors", schedule.order_errors.value());
                    put(inner, "schedule_error_p50_ns", schedule.error.quantile_ns(0.5));
                    put(inner, "schedule_error_p99_ns", schedule.error.quantile_ns(0.99));
                    put(inner, "schedule_error_max_ns", schedule.error.max_ns());
                });
    });
}

constexpr std::uint64_t rdma_rows = 12; // per page: rows are long

constexpr struct {
    const char* name;
    std::uint64_t rdma_counters::*value;
} rdma_values[]{
    {"enqueued", &rdma_counters::enqueued},
    {"done", &rdma_counters::done},
    {"done_bytes", &rdma_counters::done_bytes},
    {"skipped", &rdma_counters::skipped},
    {"failed", &rdma_counters::failed},
    {"flushed", &rdma_counters::flushed},
    {"received", &rdma_counters::received},
    {"filled", &rdma_counters::filled},
    {"receive_failed", &rdma_counters::receive_failed},
    {"receive_flushed", &rdma_counters::receive_flushed},
    {"requests", &rdma_counters::requests},
    {"executed", &rdma_counters::executed},
    {"duplicate_request", &rdma_counters::duplicate_request},
    {"out_of_sequence", &rdma_counters::out_of_sequence},
    {"not_ready", &rdma_counters::not_ready},
    {"refused", &rdma_counters::refused},
    {"ignored", &rdma_counters::ignored},
    {"packets", &rdma_counters::packets},
    {"repeated", &rdma_counters::repeated},
    {"answers", &rdma_counters::answers},
    {"stale_answers", &rdma_counters::stale_answers},
    {"wrong_answers", &rdma_counters::wrong_answers},
    {"packet_seq_err", &rdma_counters::packet_seq_err},
    {"implied_nak_seq_err", &rdma_counters::implied_nak_seq_err},
    {"local_ack_timeout_err", &rdma_counters::local_ack_timeout_err},
    {"rnr_naks", &rdma_counters::rnr_naks},
    {"rnr_nak_retry_err", &rdma_counters::rnr_nak_retry_err},
};

void fill_rdma(soft_port& port, telemetry_page& page)
{
    for (unsigned engine = 0; engine != port.engine_count(); ++engine)
        port.engine(engine).between_turns([&] {
            port.rdma(engine).for_each([&](std::uint32_t number, const any_pair& queue) {
                page.row(number, [&](rte_tel_data* inner) {
                    const rdma_counters count = queue.counters();
                    for (const auto& each : rdma_values)
                        put(inner, each.name, count.*each.value);
                });
            });
        });
}

void fill_flows(soft_port& port, telemetry_page& page)
{
    port.offloads().ask_driver(); // not between turns: the driver may take long
    port.engines().between_all_turns([&] {
        // The rules of each engine: the same list, with hits of their own.
        std::vector<std::vector<std::shared_ptr<const steering_rule>>> rules;
        for (unsigned engine = 0; engine < port.engines().count(); ++engine)
            rules.push_back(port.receiver(engine).rules().all());
        for (std::size_t number = 0; number < rules[0].size(); ++number)
            page.row(number, [&](rte_tel_data* inner) {
                const driver_share& driver = rules[0][number]->driver;
                std::uint64_t packets = driver.packets, bytes = driver.bytes;
                for (const auto& of_engine : rules) {
                    packets += of_engine[number]->packets.value();
                    bytes += of_engine[number]->bytes.value();
                }
                put(inner, "priority", rules[0][number]->priority);
                put(inner, "packets", packets);
                put(inner, "bytes", bytes);
                put(inner, "executed_by_driver", driver.executes);
            });
    });
}

int list_ports(const char*, const char*, rte_tel_data* data) noexcept
try {
    auto& all = core::undying<all_ports>();
    std::scoped_lock lock(all.mutex);
    rte_tel_data_start_dict(data);
    for (const soft_port* port : all.ports)
        if (!port->device().removed())
            rte_tel_data_add_dict_string(data, std::to_string(port->device().id()).c_str(), port->spec().c_str());
    return 0;
} catch (const std::exception&) { // no memory for the reply
    return -1;
}

/// Finds the port with DPDK number `id`; nullptr when there is none.
soft_port* numbered(const std::vector<soft_port*>& ports, std::uint64_t id)
{
    auto found = std::find_if(ports.begin(), ports.end(), [&](const soft_port* port) {
        return port->device().id() == id && !port->device().removed();
    });
    return found == ports.end() ? nullptr : *found;
}

int show_port(const char*, const char* parameters, rte_tel_data* data) noexcept
try {
    const std::vector<std::uint64_t> asked = core::telemetry_numbers(parameters, 1);
    auto& all = core::undying<all_ports>();
    std::scoped_lock lock(all.mutex);
    soft_port* port = asked.empty() ? nullptr : numbered(all.ports, asked[0]);
    if (!port)
        return -1;
    rte_tel_data_start_dict(data);
    fill_port(*port, data);
    return 0;
} catch (const std::exception&) { // no memory for the reply
    return -1;
}

/// What one queue pair waits for. The first parameter is the port, the second the queue pair.
int show_rdma_dump(const char*, const char* parameters, rte_tel_data* data) noexcept
try {
    const std::vector<std::uint64_t> asked = core::telemetry_numbers(parameters, 2);
    auto& all = core::undying<all_ports>();
    std::scoped_lock lock(all.mutex);
    soft_port* port = asked.size() != 2 ? nullptr : numbered(all.ports, asked[0]);
    if (!port)
        return -1;
    rte_tel_data_start_dict(data);
    return fill_rdma_dump(*port, asked[1], data) ? 0 : -1;
} catch (const std::exception&) { // no memory for the reply
    return -1;
}

/// Shows one page of a port's queues or rules. The first parameter is the port; the second is the first number to show.
/// @param Rows  rows per page
template <void (*Fill)(soft_port&, telemetry_page&), std::uint64_t Rows = telemetry_page::numbers>
int show_rows(const char*, const char* parameters, rte_tel_data* data) noexcept
try {
    const std::vector<std::uint64_t> asked = core::telemetry_numbers(parameters, 2);
    auto& all = core::undying<all_ports>();
    std::scoped_lock lock(all.mutex);
    soft_port* port = asked.empty() ? nullptr : numbered(all.ports, asked[0]);
    if (!port)
        return -1;
    rte_tel_data_start_dict(data);
    telemetry_page page(data, asked.size() == 2 ? asked[1] : 0, Rows);
    Fill(*port, page);
    page.end();
    return 0;
} catch (const std::exception&) { // no memory for the reply
    return -1;
}

void register_commands()
{
    static const bool once = [] {
        rte_telemetry_register_cmd("/weftio/ports", list_ports,
                                   "Open Weftio ports: DPDK number and spec. No parameters.");
        rte_telemetry_register_cmd("/weftio/port", show_port,
                                   "Counters and drop reasons of a port. Parameter: its number.");
        rte_telemetry_register_cmd(
            "/weftio/eth_rxq", show_rows<fill_rx>,
            "Counters of a port's receive queues. Parameters: its number, the first queue to show (0).");
        rte_telemetry_register_cmd(
            "/weftio/eth_txq", show_rows<fill_tx>,
            "Counters of a port's send queues. Parameters: its number, the first queue to show (0).");
        rte_telemetry_register_cmd(
            "/weftio/rdma_queue", show_rows<fill_rdma, rdma_rows>,
            "Counters of a port's queue pairs. Parameters: its number, the first queue pair to show (0).");
        rte_telemetry_register_cmd("/weftio/rdma_dump", show_rdma_dump,
                                   "What a queue pair waits for. Parameters: the number of its port, its own.");
        rte_telemetry_register_cmd(
            "/weftio/flow", show_rows<fill_flows>,
            "Hits of a port's rules, first to decide first. Parameters: its number, the first rule to show (0).");
        return true;
    }();
    static_cast<void>(once);
}

} // namespace

telemetry_entry::telemetry_entry(soft_port& port) : port_(port)
{
    register_commands();
    auto& all = core::undying<all_ports>();
    std::scoped_lock lock(all.mutex);
    all.ports.push_back(&port);
}

telemetry_entry::~telemetry_entry()
{
    auto& all = core::undying<all_ports>();
    std::scoped_lock lock(all.mutex);
    std::erase(all.ports, &port_);
}

} // namespace weftio::nic::soft
