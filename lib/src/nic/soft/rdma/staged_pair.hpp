// Memory that the CPU cannot access, as one queue pair reaches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "keys/resolve.hpp"
#include "nic/soft/rdma/roce_sender.hpp"
#include "nic/soft/rdma/staged_copies.hpp"
#include "roce/responder.hpp"
#include "roce/staged_memory.hpp"

namespace weftio::nic::soft {

/// Copies of one queue pair, of its own entries (here) and of requests of its peer (peers()). Whatever the queue pair
/// sends or completes behind a copy waits for that copy: see ticket().
class staged_pair {
 public:
    /// @param copies, sender  of the engine; must outlive this
    staged_pair(staged_copies& copies, roce_sender& sender) : copies_(copies), sender_(sender), peers_(*this) {}
    staged_pair(const staged_pair&) = delete;
    staged_pair& operator=(const staged_pair&) = delete;

    /// See roce::staged_memory.
    bool reaches(const keys::located& memory) const noexcept;
    refusal write(const keys::located& to, std::span<const std::uint8_t> bytes) { return write(to, bytes, false); }
    refusal read(const keys::located& from, std::size_t count, std::span<const std::uint8_t>& bytes)
    {
        return read(from, count, bytes, false);
    }
    /// The same, for requests of the peer.
    roce::staged_memory& peers() noexcept { return peers_; }
    /// @param responder  executes requests of the peer; nullptr: these have no sequence numbers
    /// @param front      of the packets of the queue pair; both until the next call
    void follow(const roce::responder* responder, const net::roce_front* front) noexcept
    {
        responder_ = responder;
        front_ = front;
    }

    /// Whether the queue pair has ever copied, since restart(). A queue pair that uses host memory only stops here.
    bool used() const noexcept { return state_ != nullptr; }
    /// What waits for the copies so far waits until this is over.
    std::uint64_t ticket() const noexcept { return state_ ? state_->last : 0; }
    bool is_over(std::uint64_t ticket) const noexcept { return ticket <= copies_.over(); }
    /// From now on, ticket() also stands for the copies that other queue pairs of the engine have begun.
    void join_all();
    /// Whether copies are under way.
    bool pending() const noexcept { return state_ && !is_over(state_->last); }
    /// Whether nothing has to wait: no copy is under way, and none has failed.
    bool settled() const noexcept { return !state_ || (!pending() && !failed()); }
    /// Why what waits for this ticket has failed; none: it has not.
    refusal failure_of(std::uint64_t ticket) const noexcept
    {
        return state_ && state_->failed.why != refusal::none && ticket >= state_->failed.ticket ? state_->failed.why
                                                                                                : refusal::none;
    }
    bool failed() const noexcept { return state_ && state_->failed.why != refusal::none; }
    /// The first copy that has failed. @pre failed()
    const failed_copy& failure() const noexcept
    {
        if (state_->failed.reads)
            sender_.note_unsent(*state_);
        return state_->failed;
    }
    /// Packets that the queue pair sends in this turn wait for its copies.
    void hold_packets() { sender_.hold_for(state_, front_); }
    /// Forgets all copies: a failure of theirs does not count.
    void restart() noexcept { state_ = nullptr; }

 private:
    class of_peer final : public roce::staged_memory {
     public:
        explicit of_peer(staged_pair& pair) noexcept : pair_(pair) {}
        bool reaches(const keys::located& memory) const noexcept override { return pair_.reaches(memory); }
        refusal write(const keys::located& to, std::span<const std::uint8_t> bytes) override
        {
            return pair_.write(to, bytes, true);
        }
        refusal read(const keys::located& from, std::size_t count, std::span<const std::uint8_t>& bytes) override
        {
            return pair_.read(from, count, bytes, true);
        }

     private:
        staged_pair& pair_;
    };

    refusal write(const keys::located& to, std::span<const std::uint8_t> bytes, bool by_peer);
    refusal read(const keys::located& from, std::size_t count, std::span<const std::uint8_t>& bytes, bool by_peer);
    void begin(staged_stream& by, const wanted_copy& what);

    staged_copies& copies_;
    roce_sender& sender_;
    of_peer peers_;
    const roce::responder* responder_ = nullptr;
    const net::roce_front* front_ = nullptr;
    std::shared_ptr<copies_of_pair> state_; ///< nullptr: see used()
};

} // namespace weftio::nic::soft
