// The responder of a connection: executes the requests of the peer and answers them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/counter.hpp"
#include "roce/answer_queue.hpp"
#include "roce/receive_entries.hpp"
#include "roce/remote_memory.hpp"
#include "roce/saved_results.hpp"
#include "roce/send_entries.hpp"
#include "roce/transport.hpp"
#include "roce/workspace.hpp"

namespace weftio::roce {

/// The request that a responder refused, and why.
struct refused_request {
    weftio::refusal reason = weftio::refusal::none;
    roce_operation operation = roce_operation::none;
    std::optional<remote_range> range{};        ///< memory that the peer has named, if that is the reason
    std::optional<std::uint32_t> invalidates{}; ///< key that a SEND was to invalidate, if that is the reason
};

/// Executes an atomic and returns the value before it in `original`. @return false: the memory has gone
bool change(std::uint64_t* word, roce_operation operation, std::uint64_t compare, std::uint64_t swap_or_add,
            std::uint64_t& original) noexcept;

/// One engine drives it; any thread may read the counters. Every packet passed to receive() counts once:
/// received = executed + duplicate + out_of_sequence + not_ready + refused + ignored.
///
/// RC answers as IBTA 9.7 and 9.9 define. UC sends no answers: a packet that does not fit ends its message (IBTA 9.8).
/// A failed receive entry is a local error, which ends the connection in both services.
class responder {
 public:
    /// @param memory, entries, shared  must outlive this
    responder(rdma_service service, const roce_connection& settings, remote_memory& memory, receive_entries& entries,
              workspace& shared);

    /// Executes one packet of the peer, and queues the answer. @pre its ICRC is right
    void receive(const roce_packet& packet);
    /// Sends answers, at most `most`; a long READ continues in the next call. @return how many packets
    unsigned send(packet_sink& sink, allowance most);
    /// Whether no answer waits.
    bool idle() const noexcept { return answers_.empty(); }
    /// If no answer waits, returns the memory of answers to the pool. Results of atomics stay.
    void rest() noexcept { answers_.rest(); }
    /// Flushes the current receive entry, and accepts nothing more.
    void stop();
    /// Refuses what was executed before: the request `psn`, and all behind it. Unsent answers are dropped.
    void fail(refusal why, roce_operation operation, std::uint32_t psn);
    /// Whether receive() has left a packet alone since the last call, because there was no room for a copy (not_now).
    /// The same packet may be passed again later; else it is as if it were lost.
    bool take_postponed() noexcept { return std::exchange(postponed_, false); }
    /// A READ that is being answered.
    struct unsent_read {
        std::uint32_t psn = 0;   ///< of the request
        std::uint32_t bytes = 0; ///< not sent yet
    };
    /// @pre send() reads memory for it
    unsent_read sending() noexcept;
    /// What is still to come of the WRITE in progress. @pre there is one
    const remote_range& rest_of_write() const noexcept { return left_; }
    /// Changes the settings, except the first PSN, which is read by the constructor only.
    void set(const roce_connection& settings)
    {
        answers_.allow(settings.most_reads_of_peer);
        results_.allow(settings.most_reads_of_peer);
        settings_ = settings;
    }

    bool failed() const noexcept { return failed_; }
    const refused_request& last_refused() const noexcept { return refused_; }
    std::uint32_t expected_psn() const noexcept { return expected_; }
    std::uint32_t msn() const noexcept { return msn_; }
    const roce_connection& settings() const noexcept { return settings_; }
    std::uint32_t answers_waiting() const noexcept { return static_cast<std::uint32_t>(answers_.size()); }

    // For an owner that executes requests of the peer without packets:

    /// Whether the packet `psn`, of this message of the peer, is the one to execute next, and no answer waits.
    bool expects(const message& of, std::uint32_t psn) const noexcept
    {
        const bool alone = psn == of.first_psn || of.wants_result();
        return !failed_ && idle() && psn == expected_ && under_way_ == (alone ? roce_operation::none : of.operation);
    }
    /// The next `packets` packets of a message, which end at its byte `at`, were executed. @pre expects()
    void skip(const message& of, std::uint32_t packets, std::uint32_t at) noexcept;

    core::counter received, executed, duplicate, out_of_sequence, not_ready, refused, ignored;

 private:
    /// Result of a request with the expected PSN.
    enum class verdict : std::uint8_t {
        done,
        not_ready,
        no_room,
        postponed,      ///< as no_room: see has_postponed()
        left_over,      ///< UC: the packet belongs to a message that was lost or refused
        refused,        ///< see refused_
        receive_failed, ///< as refused; the receive entry has also completed with an error
        not_invalidated ///< as receive_failed; the peer is not told
    };

    verdict execute(const roce_packet& packet, const roce_shape& shape);
    verdict take_entry();
    verdict postpone(bool begins);
    void note_postponed() noexcept;
    verdict take_send(const roce_packet& packet, const roce_shape& shape);
    verdict refuse_invalidation(std::uint32_t key, refusal why);
    verdict end_send(const roce_headers& headers, const roce_shape& shape);
    verdict take_write(const roce_packet& packet, const roce_shape& shape);
    verdict begin_write(const roce_packet& packet, const roce_shape& shape);
    verdict write_payload(const roce_packet& packet, const roce_shape& shape);
    verdict take_read(const roce_headers& headers);
    verdict take_atomic(const roce_headers& headers, const roce_shape& shape);

    void conclude(verdict result, const roce_packet& packet, const roce_shape& shape);
    void advance(const roce_packet& packet, const roce_shape& shape);
    bool look_ahead(const roce_packet& packet, const roce_shape& shape);
    bool reaches_beyond(const roce_headers& headers, const roce_shape& shape) const noexcept;
    std::uint32_t end_of_read(const roce_headers& headers) const noexcept;
    bool repeat(const roce_headers& headers, const roce_shape& shape);
    bool repeat_read(const roce_headers& headers);
    bool repeat_atomic(const roce_headers& headers);
    void give_up(std::uint8_t nak, std::uint32_t psn);
    void end_silently(const roce_headers& headers);
    void drop_message();

    verdict refuse(refusal why) noexcept;
    verdict refuse(refusal why, const remote_range& range) noexcept;
    verdict refuse_receive(refusal why) noexcept;
    bool allows(access needed) const noexcept { return (settings_.rights & needed) == needed; }
    bool in_order(const roce_shape& shape) const noexcept;
    bool reliable() const noexcept { return net::is_reliable(service_); }
    void acknowledge(std::uint8_t syndrome, std::uint32_t psn);

    bool send_acknowledge(packet_sink& sink, const answer& next);
    bool send_atomic(packet_sink& sink, const answer& next);
    bool send_part_of_read(packet_sink& sink, allowance& most, answer& next);
    bool lose_read(const answer& next, refusal why, std::uint32_t psn);

    const rdma_service service_;
    roce_connection settings_;
    remote_memory& memory_;
    receive_entries& entries_;
    std::uint32_t expected_;    ///< PSN of the next request
    std::uint32_t msn_ = 0;     ///< messages completed; a READ counts when it is requested
    bool gap_reported_ = false; ///< a NAK was sent for expected_; no other is sent before that packet comes
    /// Operation of the message in progress, or none.
    roce_operation under_way_ = roce_operation::none;
    bool has_entry_ = false;      ///< there is a current receive entry
    std::uint32_t offset_ = 0;    ///< of a SEND: bytes received so far
    remote_range left_;           ///< of a WRITE: bytes still to come
    std::uint32_t announced_ = 0; ///< of a WRITE: length of the whole message
    answer_queue answers_;
    saved_results results_;
    bool failed_ = false, postponed_ = false;
    refused_request refused_;
    std::uint8_t nak_ = 0; ///< NAK for refused_
};

} // namespace weftio::roce
