// Requests between two queue pairs of one engine without packets: one copy from memory to memory.
#pragma once

#include <cstdint>
#include <span>

#include "net/roce_rules.hpp"
#include "nic/soft/rdma/rdma_receives.hpp"
#include "nic/soft/rdma/rdma_sends.hpp"
#include "nic/soft/rdma/roce_sender.hpp"
#include "roce/key_memory.hpp"
#include "roce/requester.hpp"
#include "roce/responder.hpp"

namespace weftio::nic::soft {

/// Of a queue pair and its partner in one turn. Executes only what succeeds. What does not has changed nothing that
/// counts: its packets have the result that they would have had anyway. A message may continue either way.
class shortcut {
 public:
    /// Copying their payload takes some microseconds.
    static constexpr std::uint32_t most_packets_at_once = 16;

    struct asking_side {
        roce::requester& requester;
        rdma_sends& entries;
        roce::pieces& pieces; ///< payload of the packets being copied
        roce_sender& sender;  ///< counts the copies
    };
    struct executing_side {
        roce::responder& responder;
        roce::key_memory& memory;
        rdma_receives& entries;
        rdma_sends& sends; ///< of the same queue pair
    };

    /// @param from, to  must outlive this
    shortcut(const asking_side& from, const executing_side& to, std::uint64_t now_ns) noexcept
        : from_(from), to_(to), now_(now_ns)
    {}

    /// Executes requests, at most `most`. The repeats of one that was not ready need no packets: they wake nobody.
    /// @return whether the next request needs packets
    bool execute_all(roce::allowance& most);

 private:
    /// Some packets of one message, executed as one.
    struct part {
        const roce::message& of;
        net::roce_segment at; ///< which bytes of the message
        bool begins, ends;
    };

    bool copy(const roce::message& next, roce::allowance& most);
    bool execute(const part& one);
    bool read(const part& one);
    bool change(const roce::message& of);
    bool allows(access needed, const roce::message& of, bool checked);
    bool take(const part& one, std::span<const roce::piece> payload);
    bool repeat_later();

    const asking_side& from_;
    const executing_side& to_;
    const std::uint64_t now_;
    bool lacks_entry_ = false;          ///< the last part was not executed because no receive entry is posted
    refusal unwritten_ = refusal::none; ///< why the result of an atomic cannot be written
};

} // namespace weftio::nic::soft
