// Requests between two queue pairs of one engine without packets: one copy from memory to memory.
#pragma once

#include <cstdint>
#include <span>

#include "net/roce_rules.hpp"
#include "nic/soft/rdma/rdma_sends.hpp"
#include "nic/soft/rdma/roce_sender.hpp"
#include "roce/requester.hpp"
#include "roce/responder.hpp"

namespace weftio::nic::soft {

/// Some packets of one message, executed as one.
struct local_part {
    const roce::message& of;
    net::roce_segment at; ///< which bytes of the message
    std::uint32_t psn, packets;
    bool begins, ends;
};

/// Executes only what succeeds. After false the part has changed nothing that counts: its packets have the result that
/// they would have had anyway. A message may continue either way.
class local_responder final : public roce::responder {
 public:
    /// @param sends  of the same queue pair; must outlive this, as all others
    local_responder(rdma_service service, const roce::roce_connection& settings, roce::remote_memory& memory,
                    roce::receive_entries& entries, roce::workspace& shared, rdma_sends& sends)
        : responder(service, settings, memory, entries, shared), sends_(sends)
    {}

    /// Whether the part is what the queue pair is to execute next.
    bool expects(const local_part& part);
    /// Executes a part of a SEND or WRITE.
    bool take(const local_part& part, std::span<const roce::piece> payload);
    /// Returns in `bytes` where a part of a READ can be read with core::guarded().
    bool find(const local_part& part, roce::piece& bytes);
    /// Executes an atomic, and returns the value before it in `original`.
    bool change(const roce::message& of, std::uint64_t& original);
    /// Counts a part that was executed as its packets.
    void count(const local_part& part);
    /// Whether the last part was not executed because no receive entry is posted.
    bool lacks_entry() const noexcept { return lacks_entry_; }
    /// Counts a packet that was not ready. @return code of the RNR NAK
    std::uint8_t count_not_ready();

 private:
    bool may_take(const local_part& part, std::size_t pieces);
    bool take_entry();

    rdma_sends& sends_;
    bool lacks_entry_ = false;
};

/// Sends packets for what the partner cannot execute at once, and for all that follows in the same turn. The repeats of
/// a request that was not ready need none: they wake nobody.
class local_requester final : public roce::requester {
 public:
    /// Copying their payload takes some microseconds.
    static constexpr std::uint32_t most_packets_at_once = 16;

    /// As requester. @param sender  counts the copies; must outlive this
    local_requester(rdma_service service, const roce::roce_connection& settings, roce::send_entries& entries,
                    roce::workspace& shared, std::uint32_t first_entry, roce_sender& sender)
        : requester(service, settings, entries, shared, first_entry), sender_(sender)
    {}

    /// As send(). @param partner  of the queue pair of this engine that is connected to this one; nullptr: none is
    unsigned send_to(local_responder* partner, roce::packet_sink& sink, roce::allowance most, std::uint64_t now_ns);

 private:
    bool copy_all(local_responder& partner, roce::allowance& most, std::uint64_t now);
    bool copy(local_responder& partner, roce::allowance& most, std::uint64_t now);
    bool execute(local_responder& partner, const local_part& part);

    roce_sender& sender_;
    refusal refused_ = refusal::none; ///< why the result of an atomic cannot be written
};

} // namespace weftio::nic::soft
