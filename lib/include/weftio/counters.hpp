// Counters of ports, queues and flow rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weftio {

/// Why a packet did not reach a kernel. Each packet that a port received is delivered, held, or counted under one
/// reason.
enum class drop_reason {
    no_match,        ///< no flow rule matched
    dropped_by_flow, ///< a rule dropped it; packets that the driver drops for a rule are not received (see flow)
    out_of_buffer,   ///< no free slot: the kernel has not released enough slots
    too_long,        ///< longer than a slot
    runt,            ///< shorter than an Ethernet header
    queue_closed,    ///< its queue was closed while the packet was in transit
    count_           ///< number of reasons
};
const char* to_string(drop_reason reason) noexcept;

/// Always: received = delivered + held + sum(dropped). Each counter is counted on its own, where packets enter or leave
/// the port; none is computed from the others.
struct port_counters {
    /// Packets taken from the driver, without RDMA packets. Those for a queue pair are counted in its rdma_counters.
    /// `rdma_received` of DPDK's telemetry command `/weftio/port` counts all RDMA packets, also those for no queue
    /// pair.
    std::uint64_t received = 0;
    std::uint64_t received_bytes = 0; ///< bytes of packets that were given to a queue or dropped
    std::uint64_t delivered = 0;      ///< completions written
    /// Packets in the port: waiting for a slot (see port_options::hold_when_full), in transit to another engine, or
    /// being copied to the memory that kernels read (see eth_rxq_options::buffers).
    std::uint64_t held = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(drop_reason::count_)> dropped{};
    /// Packets lost below the port, as the driver reports them; not part of `received`. On AF_XDP: what the port's
    /// sockets have lost (a full receive ring, an empty fill ring, packets longer than a buffer), or what the Linux
    /// interface has dropped on all its queues since the port was opened (rx_dropped and rx_missed_errors); the larger
    /// of the two, because some interfaces count the former in the latter. On AF_PACKET: what its rings had no room
    /// for. On a wire in shared memory: packets that are longer than the port's MTU, and packets that were sent to an
    /// earlier port whose slot on the wire this port has reused.
    std::uint64_t driver_missed = 0;
    std::uint64_t copied_bytes = 0;    ///< bytes copied on the way to a kernel
    std::uint64_t capture_damaged = 0; ///< 1 if a capture file ended inside a record
    /// Frames that the Linux interface behind the port has dropped instead of sending since the port was opened: its
    /// tx_dropped, which counts frames of all programs. The frames of this port among them are also counted as sent. On
    /// a wire in shared memory: the frames of this port that were not delivered.
    std::uint64_t tx_dropped = 0;

    std::uint64_t dropped_total() const noexcept;
};

/// The packets that a rule was applied to.
struct flow_hits {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0; ///< bytes of their frames; a driver that executes the rule may include the 4-byte CRCs
};

/// Counters of one queue: offered = delivered + drops, over the packets that steering sent here.
struct eth_rxq_counters {
    std::uint64_t delivered = 0;
    std::uint64_t delivered_bytes = 0;
    std::uint64_t out_of_buffer = 0;
    std::uint64_t too_long = 0;
    std::uint64_t flushed = 0; ///< slots posted but not filled when the queue was stopped or reset
};

/// Counters of one send queue. When the queue is idle: enqueued = sent + waited + failed + flushed. While a wait entry
/// delays the queue, the queue is not idle: the wait is counted as enqueued, and later as waited or as flushed.
///
/// A frame counts as sent if it was written to the capture file, or if the link was up, the frame was not longer than
/// the MTU allows (of the Linux interface, if one is behind the port) and the driver accepted it. Frames that the
/// kernel drops afterwards are in port_counters::tx_dropped.
struct eth_txq_counters {
    std::uint64_t enqueued = 0; ///< entries that the NIC has fetched
    std::uint64_t sent = 0;     ///< frames that the port is done with
    std::uint64_t sent_bytes = 0;
    std::uint64_t waited = 0; ///< waits that are over, or were passed to hardware, and no-operations
    /// Entries that could not be executed, and doorbell records that claimed too many entries. If the link was down,
    /// the port gone or a capture file full, the first entry counts here and is reported; the others are flushed.
    std::uint64_t failed = 0;
    /// Entries that were not executed, because an earlier one failed or the queue was stopped. Each of their 64-byte
    /// blocks counts.
    std::uint64_t flushed = 0;
    std::uint64_t copied_bytes = 0;                  ///< payload that was copied before it was sent
    std::uint64_t tx_pp_timestamp_past_errors = 0;   ///< waits whose time had passed: sent at once
    std::uint64_t tx_pp_timestamp_future_errors = 0; ///< waits beyond the horizon: failed
    std::uint64_t tx_pp_timestamp_order_errors = 0;  ///< waits whose time was earlier than that of the previous wait
    std::uint64_t lost_events = 0;                   ///< events lost because the event queue was full (progress_engine)
};

/// How late the frames behind wait entries were handed to the port, in nanoseconds. Never negative: no frame is early.
struct schedule_error {
    std::uint64_t count = 0;
    std::uint64_t p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
};

/// Counters of one DMA queue, in entries. When the queue is idle: enqueued = copied + skipped + failed + flushed.
struct dma_counters {
    std::uint64_t enqueued = 0; ///< entries that the engine is done with
    std::uint64_t copied = 0;   ///< copies and fills
    std::uint64_t copied_bytes = 0;
    std::uint64_t skipped = 0; ///< no-operations
    std::uint64_t failed = 0;  ///< entries that could not be executed, and doorbell records that claimed too much
    /// Entries that were not executed, because an earlier one failed or the queue was stopped. Each of their 64-byte
    /// blocks counts.
    std::uint64_t flushed = 0;
    std::uint64_t lost_events = 0; ///< events lost because the event queue was full (progress_engine)
};

/// Counters of one file queue, in entries: enqueued = read + written + synced + skipped + failed + flushed.
struct file_queue_counters {
    std::uint64_t enqueued = 0; ///< entries that the engine is done with
    std::uint64_t read = 0;     ///< reads, including `short_reads`
    std::uint64_t read_bytes = 0;
    std::uint64_t short_reads = 0; ///< reads that reached the end of the file
    std::uint64_t written = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t synced = 0;
    std::uint64_t skipped = 0; ///< no-operations
    std::uint64_t failed = 0;  ///< entries that could not be executed, and doorbell records that claimed too much
    /// Entries that were not executed, because an earlier one failed or the queue was stopped. Each of their 64-byte
    /// blocks counts.
    std::uint64_t flushed = 0;
    std::uint64_t lost_events = 0; ///< events lost because the event queue was full (progress_engine)
};

/// Counters of one queue pair. Every entry and every packet is counted once. When the queue pair is idle:
/// enqueued = done + skipped + failed + flushed; received = filled + receive_failed + receive_flushed;
/// requests = executed + duplicate_request + out_of_sequence + not_ready + refused + ignored.
struct rdma_counters {
    std::uint64_t enqueued = 0;    ///< entries of the send ring that the NIC has fetched, including those in flight
    std::uint64_t done = 0;        ///< executed entries
    std::uint64_t done_bytes = 0;  ///< bytes of their messages
    std::uint64_t skipped = 0;     ///< no-operations
    std::uint64_t failed = 0;      ///< entries that could not be executed
    std::uint64_t flushed = 0;     ///< entries behind one that failed
    std::uint64_t lost_events = 0; ///< events lost because the event queue was full (progress_engine)
    std::uint64_t received = 0;    ///< receive entries that the NIC has used
    std::uint64_t filled = 0;      ///< receive entries that were filled by a message
    std::uint64_t receive_failed = 0;
    std::uint64_t receive_flushed = 0;
    std::uint64_t requests = 0; ///< request packets of the peer; each is also in one of the next six counters
    std::uint64_t executed = 0;
    std::uint64_t duplicate_request = 0;
    std::uint64_t out_of_sequence = 0;
    std::uint64_t not_ready = 0; ///< no receive was posted
    /// The packet was refused, which ends its message, and with RC the queue pair. With UD: it had another Q_Key, or
    /// its receive failed.
    std::uint64_t refused = 0;
    /// Packets behind a refused one; with RC also repeats of a READ or an atomic that cannot be answered, and those
    /// that had no memory; with UC also packets behind a lost one; with UD those that are no datagram for this
    /// queue pair: malformed, of another service or partition, or longer than the port's path MTU.
    std::uint64_t ignored = 0;
    std::uint64_t packets = 0;       ///< request packets sent
    std::uint64_t repeated = 0;      ///< those of `packets` that are retransmissions
    std::uint64_t answers = 0;       ///< response packets of the peer
    std::uint64_t stale_answers = 0; ///< responses to requests that have been acknowledged already
    std::uint64_t wrong_answers = 0; ///< responses that belong to no request, or are malformed
    /// NAKs that report a lost packet (PSN sequence error). This counter and those below have the names of mlx5.
    std::uint64_t packet_seq_err = 0;
    std::uint64_t implied_nak_seq_err = 0;
    std::uint64_t local_ack_timeout_err = 0;
    std::uint64_t rnr_naks = 0; ///< RNR NAKs: the peer had no receive posted
    std::uint64_t rnr_nak_retry_err = 0;
};

/// Packets to and from all queue pairs of a port, since the port was opened. Between two queue pairs of one port a copy
/// may take the place of up to 16 packets: it counts as one packet with the bytes of its payload, sent and received.
struct rdma_port_counters {
    std::uint64_t sent = 0;
    std::uint64_t sent_bytes = 0; ///< of frames, without their CRCs
    std::uint64_t received = 0;   ///< also those that are damaged, or for no queue pair
    std::uint64_t received_bytes = 0;
    std::uint64_t damaged = 0;              ///< those of `received` that are malformed or have a wrong checksum
    std::uint64_t rx_icrc_encapsulated = 0; ///< those of `damaged` with a wrong ICRC
    std::uint64_t lost = 0;                 ///< not part of `received`: another engine had no room for the packet
    std::uint64_t congestion = 0;           ///< those of `received` that are CNPs, which are ignored
    rdma_counters queues{};                 ///< sums over all queue pairs, also those that have been destroyed
};

} // namespace weftio
