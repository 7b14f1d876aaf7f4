// The dump of a queue pair as text.
#include "weftio/rdma_dump.hpp"

#include <fmt/format.h>

#include <iterator>

#include "weftio/device/wqe.h"

namespace weftio {

namespace {

const char* name_of_opcode(std::uint8_t opcode) noexcept
{
    switch (opcode) {
        case WEFTIO_OPCODE_NOP: return "NOP";
        case WEFTIO_OPCODE_DUMP: return "DUMP";
        case WEFTIO_OPCODE_UMR: return "bind or invalidation of a window";
        case WEFTIO_OPCODE_SEND_INVALIDATE: return "SEND with invalidate";
        case WEFTIO_OPCODE_RDMA_WRITE: return "WRITE";
        case WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE: return "WRITE with immediate";
        case WEFTIO_OPCODE_SEND: return "SEND";
        case WEFTIO_OPCODE_SEND_IMMEDIATE: return "SEND with immediate";
        case WEFTIO_OPCODE_RDMA_READ: return "READ";
        case WEFTIO_OPCODE_COMPARE_SWAP: return "COMPARE_SWAP";
        case WEFTIO_OPCODE_FETCH_ADD: return "FETCH_ADD";
        default: return "unknown opcode";
    }
}

std::string connection_of(const rdma_dump& dump)
{
    if (!dump.connected)
        return ", not connected";
    return fmt::format(", {}, {} to {} queue {} at {:02x}{}, path MTU {}, DSCP {}, hop limit {}",
                       to_string(dump.service), dump.address, dump.peer_address, dump.peer_queue,
                       fmt::join(dump.peer_mac, ":"), dump.same_port ? " (this port)" : "", dump.path_mtu, dump.dscp,
                       dump.hop_limit);
}

std::string waiting_of(const rdma_dump& dump)
{
    if (dump.awaits == rdma_awaits::nothing)
        return "awaits nothing";
    const std::string end = dump.ends_in_ns == 0 ? std::string("without a timer running")
                                                 : fmt::format("for {:.3f} ms more", double(dump.ends_in_ns) / 1e6);
    return fmt::format("awaits {} {}", to_string(dump.awaits), end);
}

void add_requests(const rdma_dump& dump, std::string& text)
{
    const auto to = std::back_inserter(text);
    fmt::format_to(
        to, "\n  requests: PSN {:#x} acknowledged, {:#x} next, {:#x} sent; {} packets in flight, window {}; {}",
        dump.acknowledged_psn, dump.next_psn, dump.sent_psn, dump.packets_in_flight, dump.window, waiting_of(dump));
    fmt::format_to(to, "; retries left: {}, without a receive: {}", dump.retries_left,
                   dump.rnr_retries_left == 7 ? "no limit" : fmt::format("{}", dump.rnr_retries_left));
    fmt::format_to(to, "\n  send ring: {} committed, {} begun, {} completed; {} entries in flight", dump.committed,
                   dump.begun, dump.completed, dump.entries_in_flight);
    for (const rdma_dump_entry& each : dump.entries)
        fmt::format_to(to, "\n    position {}: {}, {} bytes, {} packets from PSN {:#x}", each.position,
                       name_of_opcode(each.opcode), each.bytes, each.packets, each.first_psn);
    if (dump.entries_in_flight > dump.entries.size())
        fmt::format_to(to, "\n    and {} more", dump.entries_in_flight - dump.entries.size());
}

void add_packets(const rdma_counters& of, std::string& text)
{
    const auto to = std::back_inserter(text);
    fmt::format_to(to,
                   "\n  packets: {} sent, {} of them repeats, after {} NAKs, {} gaps, {} timeouts and {} RNR NAKs; {} "
                   "answers, {} of them late, {} wrong",
                   of.packets, of.repeated, of.packet_seq_err, of.implied_nak_seq_err, of.local_ack_timeout_err,
                   of.rnr_naks, of.answers, of.stale_answers, of.wrong_answers);
    fmt::format_to(to,
                   "\n  packets of the peer: {} received, {} executed, {} repeats, {} out of sequence, {} without a "
                   "receive, {} refused, {} ignored",
                   of.requests, of.executed, of.duplicate_request, of.out_of_sequence, of.not_ready, of.refused,
                   of.ignored);
}

} // namespace

const char* to_string(rdma_service service) noexcept
{
    switch (service) {
        case rdma_service::reliable: return "RC";
        case rdma_service::unreliable: return "UC";
        case rdma_service::datagram: return "UD";
    }
    return "unknown";
}

const char* to_string(rdma_state state) noexcept
{
    switch (state) {
        case rdma_state::reset: return "RESET";
        case rdma_state::init: return "INIT";
        case rdma_state::ready_to_receive: return "RTR";
        case rdma_state::ready_to_send: return "RTS";
        case rdma_state::send_queue_drained: return "SQD";
        case rdma_state::send_queue_error: return "SQE";
        case rdma_state::error: return "ERR";
    }
    return "unknown";
}

const char* to_string(rdma_awaits what) noexcept
{
    switch (what) {
        case rdma_awaits::nothing: return "nothing";
        case rdma_awaits::answer: return "an answer";
        case rdma_awaits::receiver: return "a receive of the peer";
    }
    return "unknown";
}

std::string to_string(const rdma_dump& dump)
{
    std::string text = fmt::format("queue pair {}: {}{}", dump.number, to_string(dump.state), connection_of(dump));
    add_requests(dump, text);
    const auto to = std::back_inserter(text);
    fmt::format_to(to,
                   "\n  requests of the peer: PSN {:#x} expected, {} messages completed; {} answers to send, {} "
                   "receives posted",
                   dump.expected_psn, dump.msn, dump.answers_waiting, dump.receives_posted);
    for (const rdma_refused& each : dump.refused_by)
        fmt::format_to(to, "\n    {} refused: {}", each.count, explain(each.reason));
    add_packets(dump.counters, text);
    fmt::format_to(to, "\n  {} turns of engine {}; last error: {}", dump.turns, dump.engine,
                   dump.last_error.empty() ? "none" : dump.last_error.c_str());
    return text;
}

} // namespace weftio
