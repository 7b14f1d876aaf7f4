// The requester of a connection: turns entries into packets, and completes entries when the peer has answered.
#pragma once

#include <cstdint>

#include "core/counter.hpp"
#include "roce/message_ring.hpp"
#include "roce/patience.hpp"
#include "roce/round_trip.hpp"
#include "roce/send_entries.hpp"
#include "roce/standing.hpp"
#include "roce/transport.hpp"
#include "roce/workspace.hpp"

namespace weftio::roce {

/// One engine drives it; any thread may read the counters. Entries read = completed + failed + flushed + in flight.
///
/// Sequence numbers: acknowledged <= cursor <= sent. The peer has answered everything before `acknowledged`. The cursor
/// is the number of the next packet to send. `sent` is the number after the highest that was ever sent. A retry moves
/// the cursor back to `acknowledged` (go-back-N); a late ACK moves it forward again.
class requester {
 public:
    /// @param entries, shared  must outlive this;  @param first_entry  index of the first entry
    requester(rdma_service service, const roce_connection& settings, send_entries& entries, workspace& shared,
              std::uint32_t first_entry = 0);

    /// Sends what may be sent, at most `most`, and repeats packets whose answer is overdue.
    /// @return how many packets were sent; a NOP counts as one
    unsigned send(packet_sink& sink, allowance most, std::uint64_t now_ns);
    /// Takes one answer of the peer. @pre its ICRC is right
    void receive(const roce_packet& packet, std::uint64_t now_ns);
    /// The latest time of the next send(); 0: none is needed before an answer or a new entry comes.
    std::uint64_t deadline_ns() const noexcept { return failed_ ? 0 : patience_.deadline(); }
    /// Flushes everything in flight, and sends nothing more.
    void stop();
    /// If no request is in flight, returns their memory to the pool.
    void rest() noexcept { messages_.rest(); }
    /// Starts no new entry while `held` is true.
    void hold(bool held) noexcept { held_ = held; }
    /// Never blocks. Call it between calls of send() and receive().
    requester_standing standing() noexcept;
    /// Message `number` of those in flight; 0 is the oldest. @pre number < standing().messages_in_flight
    const message& message_at(std::uint32_t number) noexcept { return messages_.at(messages_.first() + number); }
    /// The sequence number after the highest that was ever sent.
    std::uint32_t next_psn() const noexcept { return sent_; }

    bool failed() const noexcept { return failed_; }
    /// Whether all messages that were read have been sent, and at most 4 sequence numbers have no answer yet.
    bool is_short_of_work() const noexcept
    {
        constexpr std::uint32_t few = 4;
        return cursor_ == messages_.end() && ((sent_ - acknowledged_) & net::psn_mask) <= few;
    }
    /// Whether the peer was not ready (RNR NAK): send() retries at deadline_ns().
    bool waits_after_rnr_nak() const noexcept { return !failed_ && patience_.waits_for_receiver(); }
    /// Whether nothing is in flight.
    bool idle() const noexcept { return messages_.empty(); }

    // For an owner that has the peer execute requests without packets:

    /// Repeats packets whose answer is overdue. Call it before next_request(); send() does so itself.
    /// @param sink  where packets were sent; nullptr: none was, or the peer reads them at once
    void check_clock(std::uint64_t now_ns, packet_sink* sink = nullptr);
    /// Executes local operations up to the next request. @return nullptr: there is none, or it must wait
    const message* next_request(allowance& most, std::uint64_t now_ns);
    /// The sequence number of the next packet.
    std::uint32_t cursor_psn() noexcept { return net::psn_add(messages_.psn_before(cursor_), packet_); }
    /// Request packets without an answer. A READ counts as one until its last response has come.
    std::uint32_t in_flight() noexcept;
    /// The peer has executed all that was sent. Ends it, unless an answer is to come. @return whether all has ended
    bool end_unasked(std::uint64_t now_ns) { return without_request_ != 0 && acknowledge_to(cursor_psn(), now_ns); }
    /// The peer has executed and answered the next `count` packets of the next request, which were not sent.
    /// @pre nothing is in flight
    void skip(std::uint32_t count, std::uint64_t now_ns);
    /// Whether one packet goes alone: the peer was not ready for it before.
    bool sends_alone() const noexcept { return reliable() && patience_.window() == 1; }
    /// Ends the queue: the oldest message fails, the others are flushed.
    void fail(refusal why) { end_all(why); }

    core::counter entries_read, completed, failed_entries, flushed;
    core::counter packets, repeated;                     ///< packets sent; of these, retries
    core::counter answers, stale_answers, wrong_answers; ///< received; late: already answered; answers to no request
    core::counter packet_seq_err, implied_nak_seq_err, local_ack_timeout_err, rnr_naks; ///< reasons of retries
    core::counter rnr_nak_retry_err; ///< RNR NAKs after rnr_retry retries: the queue fails

 private:
    bool admit();
    bool acknowledge_to(std::uint32_t psn, std::uint64_t now);
    bool execute(message& local, allowance& most);
    bool waits_at_fence(const message& next) noexcept;
    bool may_send(std::uint32_t flying) noexcept;
    bool send_packet(packet_sink& sink, allowance& most, std::uint32_t flying, std::uint64_t now);
    bool send_read(packet_sink& sink, allowance& most, std::uint64_t now);
    void sent_one(std::uint32_t count, std::uint32_t psns, std::uint64_t now);
    unsigned most_without_request() const noexcept;
    bool asks_for_ack(bool ends, std::uint32_t flying) noexcept;
    void refuse(refusal why);

    void take_answer(const roce_packet& packet, const roce_shape& shape, std::uint64_t now);
    void take_acknowledge(const roce_headers& headers, std::uint64_t now);
    void take_nak(const roce_headers& headers, std::uint64_t now);
    void take_not_ready(const roce_headers& headers, std::uint64_t now);
    void take_read_response(const roce_packet& packet, const roce_shape& shape, std::uint64_t now);
    void take_atomic(const roce_packet& packet, std::uint64_t now);
    bool answers_oldest(std::uint32_t psn, std::uint64_t now);
    void take_data(std::uint32_t psn, piece bytes, std::uint32_t offset, std::uint64_t now);
    void repeat_for_gap(std::uint32_t psn);
    void progressed(std::uint32_t packets, std::uint64_t now);
    void repeat_or_give_up(refusal reason_to_give_up, bool again);
    /// What was sent when an answer was missed.
    struct missed_answer {
        std::uint64_t until = 0; ///< the packets that is_late() asks about; 0: those that it has not asked about yet
        std::uint32_t psn = 0;   ///< acknowledged_ when it was last asked
    };
    bool is_late(packet_sink& sink, missed_answer& of) noexcept;

    bool is_done(const message& oldest) const noexcept;
    void retire();
    void go_back() noexcept;
    void step_back() noexcept;
    void end_all(refusal of_oldest);

    std::uint32_t offset_in(const message& one, std::uint32_t psn) const noexcept
    {
        return (psn - one.first_psn) & net::psn_mask;
    }
    bool is_read_in_part() noexcept;
    std::uint32_t packets_of_next_read() noexcept;
    std::uint32_t answers_in_flight() noexcept;
    std::uint32_t reads_in_flight() noexcept;
    bool asks_in_parts() noexcept;
    bool reliable() const noexcept { return net::is_reliable(service_); }

    const roce_connection settings_;
    send_entries& entries_;
    pieces& pieces_; ///< payload of the packet being sent
    const rdma_service service_;
    message_ring messages_;
    patience patience_;
    round_trip round_trip_;
    std::uint32_t next_entry_;
    std::uint32_t cursor_ = 0, packet_ = 0; ///< what is sent next: message number, and packet in that message
    std::uint32_t acknowledged_, sent_;     ///< sequence numbers, see above
    std::uint32_t parts_end_;               ///< the PSN after the last READ in flight that was requested in parts
    unsigned without_request_ = 0;          ///< packets sent since the last one that asked for an ACK
    std::uint32_t gap_psn_ = 0;             ///< of the last answer that has shown a gap
    missed_answer timed_out_, overdue_;
    /// While the window is narrow, a READ request ends at a multiple of so many packets.
    const std::uint32_t read_part_;
    bool failed_ = false;
    bool held_ = false;
};

} // namespace weftio::roce
