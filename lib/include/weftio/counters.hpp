// What ports, queues and rules count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weftio {

/// Why a packet did not reach a kernel. Each packet that a port received is delivered, held, or counted under one
/// reason.
enum class drop_reason {
    no_match,        ///< no flow rule matched
    dropped_by_flow, ///< a rule dropped it; what the driver drops for a rule is not received (see flow)
    out_of_buffer,   ///< no free slot: the kernel has not released enough
    too_long,        ///< longer than a slot
    runt,            ///< shorter than an Ethernet header
    queue_closed,    ///< its queue was closed while the packet was in transit
    count_           ///< number of reasons
};
const char* to_string(drop_reason reason) noexcept;

/// Always: received = delivered + held + sum(dropped). Each is counted independently, at the place where packets enter
/// or leave.
struct port_counters {
    /// Packets taken from the driver, but for those of queue pairs, which are in rdma_counters and, in sum and with
    /// those for no queue pair, in DPDK's telemetry (`rdma_received` of `/weftio/port`).
    std::uint64_t received = 0;
    std::uint64_t received_bytes = 0; ///< bytes of packets given to a queue or dropped
    std::uint64_t delivered = 0;      ///< completions written
    /// Packets in the port: waiting for a slot (see port_options::hold_when_full), in transit to another engine, or
    /// being copied to the memory that kernels read (see eth_rxq_options::buffers).
    std::uint64_t held = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(drop_reason::count_)> dropped{};
    /// Packets lost below the port, as the driver reports them; not part of `received`. On AF_XDP at least the packets
    /// that the kernel's interface has dropped on all its queues since the port was opened: rx_dropped and
    /// rx_missed_errors. On a wire in shared memory: packets that are longer than the port's MTU, or came for an ended
    /// port that had the place.
    std::uint64_t driver_missed = 0;
    std::uint64_t copied_bytes = 0;    ///< bytes copied on the way to a kernel
    std::uint64_t capture_damaged = 0; ///< 1 if a capture file ended inside a record
    /// Frames that the kernel's interface behind the port has dropped instead of sending since the port was opened: its
    /// tx_dropped, which counts frames of all programs. The frames of this port among them have counted as sent. On a
    /// wire in shared memory: the frames of this port that were not delivered.
    std::uint64_t tx_dropped = 0;

    std::uint64_t dropped_total() const noexcept;
};

/// The packets that a rule has decided about.
struct flow_hits {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0; ///< of frames; a driver that executes the rule may count the four bytes of each CRC too
};

/// Counters of one queue: offered = delivered + drops, over the packets that steering sent here.
struct eth_rxq_counters {
    std::uint64_t delivered = 0;
    std::uint64_t delivered_bytes = 0;
    std::uint64_t out_of_buffer = 0;
    std::uint64_t too_long = 0;
    std::uint64_t flushed = 0; ///< slots posted but not filled when the queue was stopped or reset
};

/// A queue's own account. Once it is idle: enqueued = sent + waited + failed + flushed. A queue that a wait holds is
/// not: the wait is enqueued, and counts as waited when its time has come, or as flushed.
///
/// A frame counts as sent when the link was up, the frame was no longer than the MTU allows (that of the kernel's
/// interface, where one is behind the port) and the driver took it, or it was written to the capture file. What the
/// kernel drops afterwards is in port_counters::tx_dropped.
struct eth_txq_counters {
    std::uint64_t enqueued = 0; ///< entries that the NIC took up
    std::uint64_t sent = 0;     ///< frames that the port is done with
    std::uint64_t sent_bytes = 0;
    std::uint64_t waited = 0; ///< waits that are over, or left to hardware, and no-operations
    /// Entries that could not be executed, also because the link was down, the port gone or a capture file full: of
    /// these the first, which is told. And doorbell records that claimed too much.
    std::uint64_t failed = 0;
    /// Entries behind one that failed, or that were stopped; their 64-byte blocks count one by one.
    std::uint64_t flushed = 0;
    std::uint64_t copied_bytes = 0;                  ///< payload that was copied on its way out
    std::uint64_t tx_pp_timestamp_past_errors = 0;   ///< waits whose time had passed: sent at once
    std::uint64_t tx_pp_timestamp_future_errors = 0; ///< waits beyond the horizon: failed
    std::uint64_t tx_pp_timestamp_order_errors = 0;  ///< waits earlier than the one before
    std::uint64_t lost_events = 0;                   ///< notifications that found no room (progress_engine)
};

/// How late frames behind a wait were handed to the port, in nanoseconds. Never negative: nothing is early.
struct schedule_error {
    std::uint64_t count = 0;
    std::uint64_t p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
};

/// A queue's own account. Once it is idle: enqueued = copied + skipped + failed + flushed, all of them entries.
struct dma_counters {
    std::uint64_t enqueued = 0; ///< entries that the engine is done with
    std::uint64_t copied = 0;   ///< copies and fills
    std::uint64_t copied_bytes = 0;
    std::uint64_t skipped = 0; ///< no-operations
    std::uint64_t failed = 0;  ///< entries that could not be executed, and doorbell records that claimed too much
    /// Entries behind one that failed, or that were stopped; 64-byte blocks count one by one.
    std::uint64_t flushed = 0;
    std::uint64_t lost_events = 0; ///< notifications that found no room (progress_engine)
};

/// A queue's own account: enqueued = read + written + synced + skipped + failed + flushed, all of them entries.
struct file_queue_counters {
    std::uint64_t enqueued = 0; ///< entries that the engine is done with
    std::uint64_t read = 0;     ///< reads, also those that ended with the file
    std::uint64_t read_bytes = 0;
    std::uint64_t short_reads = 0; ///< those of `read` that ended with the file
    std::uint64_t written = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t synced = 0;
    std::uint64_t skipped = 0; ///< no-operations
    std::uint64_t failed = 0;  ///< entries that could not be executed, and doorbell records that claimed too much
    /// Entries behind one that failed, or that were stopped; 64-byte blocks count one by one.
    std::uint64_t flushed = 0;
    std::uint64_t lost_events = 0; ///< notifications that found no room (progress_engine)
};

/// Every entry is counted once, and so is every packet, once the queue is idle:
/// enqueued = done + skipped + failed + flushed; received = filled + receive_failed + receive_flushed;
/// requests = executed + duplicate_request + out_of_sequence + not_ready + refused + ignored.
struct rdma_counters {
    std::uint64_t enqueued = 0;    ///< entries of the send ring that the NIC took up, those in flight too
    std::uint64_t done = 0;        ///< executed
    std::uint64_t done_bytes = 0;  ///< of their messages
    std::uint64_t skipped = 0;     ///< no-operations
    std::uint64_t failed = 0;      ///< could not be executed
    std::uint64_t flushed = 0;     ///< behind one that failed
    std::uint64_t lost_events = 0; ///< notifications that found no room (progress_engine)
    std::uint64_t received = 0;    ///< receives taken
    std::uint64_t filled = 0;      ///< by a message
    std::uint64_t receive_failed = 0;
    std::uint64_t receive_flushed = 0;
    std::uint64_t requests = 0; ///< packets of the peer's requests, by what became of them:
    std::uint64_t executed = 0;
    std::uint64_t duplicate_request = 0;
    std::uint64_t out_of_sequence = 0;
    std::uint64_t not_ready = 0; ///< no receive was posted
    std::uint64_t refused = 0;   ///< packets that ended their message, and with RC the queue pair
    std::uint64_t ignored = 0;   ///< those behind one that was refused; with UC those behind one that was lost
    std::uint64_t packets = 0;   ///< of our requests
    std::uint64_t repeated = 0;  ///< of these, sent before
    std::uint64_t answers = 0;   ///< packets of the peer's answers
    std::uint64_t stale_answers = 0;
    std::uint64_t wrong_answers = 0;
    std::uint64_t packet_seq_err = 0; ///< NAKs that told of a lost packet; from here on by the names of mlx5
    std::uint64_t implied_nak_seq_err = 0;
    std::uint64_t local_ack_timeout_err = 0;
    std::uint64_t rnr_naks = 0; ///< the peer had no receive
    std::uint64_t rnr_nak_retry_err = 0;
};

} // namespace weftio
