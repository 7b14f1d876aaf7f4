// Telemetry of what a queue pair waits for.
#include <rte_telemetry.h>

#include <string>

#include "core/telemetry.hpp"
#include "nic/soft/soft_port.hpp"
#include "nic/soft/telemetry.hpp"
#include "weftio/rdma_dump.hpp"

namespace weftio::nic::soft {

namespace {

using core::put;

void put_text(rte_tel_data* dict, const char* name, const std::string& text)
{
    rte_tel_data_add_dict_string(dict, name, text.c_str());
}

void put_connection(rte_tel_data* dict, const rdma_dump& dump)
{
    put(dict, "number", dump.number);
    put(dict, "engine", dump.engine);
    put_text(dict, "state", to_string(dump.state));
    put(dict, "turns", dump.turns);
    put(dict, "connected", dump.connected);
    put(dict, "reliable", dump.service == rdma_service::reliable);
    put(dict, "same_port", dump.same_port);
    put_text(dict, "address", dump.address);
    put_text(dict, "peer_address", dump.peer_address);
    put(dict, "peer_queue", dump.peer_queue);
    put(dict, "path_mtu", dump.path_mtu);
    put(dict, "dscp", dump.dscp);
    put(dict, "hop_limit", dump.hop_limit);
}

void put_requests(rte_tel_data* dict, const rdma_dump& dump)
{
    put(dict, "acknowledged_psn", dump.acknowledged_psn);
    put(dict, "next_psn", dump.next_psn);
    put(dict, "sent_psn", dump.sent_psn);
    put(dict, "packets_in_flight", dump.packets_in_flight);
    put(dict, "window", dump.window);
    put_text(dict, "awaits", to_string(dump.awaits));
    put(dict, "ends_in_ns", dump.ends_in_ns);
    put(dict, "retries_left", dump.retries_left);
    put(dict, "rnr_retries_left", dump.rnr_retries_left);
    put(dict, "committed", dump.committed);
    put(dict, "begun", dump.begun);
    put(dict, "completed", dump.completed);
    put(dict, "entries_in_flight", dump.entries_in_flight);
    for (const rdma_dump_entry& each : dump.entries)
        core::nest(dict, "position_" + std::to_string(each.position), [&](rte_tel_data* inner) {
            put(inner, "opcode", each.opcode);
            put(inner, "bytes", each.bytes);
            put(inner, "first_psn", each.first_psn);
            put(inner, "packets", each.packets);
        });
}

void put_answers(rte_tel_data* dict, const rdma_dump& dump)
{
    put(dict, "expected_psn", dump.expected_psn);
    put(dict, "msn", dump.msn);
    put(dict, "answers_waiting", dump.answers_waiting);
    put(dict, "receives_posted", dump.receives_posted);
    for (const rdma_refused& each : dump.refused_by)
        put(dict, (std::string("refused_") + to_string(each.reason)).c_str(), each.count);
    put_text(dict, "last_error", dump.last_error);
    put(dict, "last_error_ns", dump.last_error_ns);
}

} // namespace

bool fill_rdma_dump(soft_port& port, std::uint64_t number, rte_tel_data* dict)
{
    rdma_dump dump;
    bool found = false;
    port.engines().between_all_turns([&] {
        for (unsigned engine = 0; engine != port.engine_count() && number <= UINT32_MAX; ++engine)
            if (any_pair* const queue = port.rdma(engine).find(static_cast<std::uint32_t>(number))) {
                found = true;
                dump = queue->dump();
                dump.engine = engine;
            }
    });
    if (!found)
        return false;
    put_connection(dict, dump);
    put_requests(dict, dump);
    put_answers(dict, dump);
    return true;
}

} // namespace weftio::nic::soft
