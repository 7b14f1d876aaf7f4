// Memory that the CPU cannot access, as one queue pair reaches it.
#pragma once

#include <algorithm>
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
///
/// One copy serves many packets: bytes of a long message are fetched ahead of its packets, and what arrives is
/// collected (staged_copies::collect()).
class staged_pair {
 public:
    /// @param copies, sender  of the engine; must outlive this
    staged_pair(staged_copies& copies, roce_sender& sender) : copies_(copies), sender_(sender), peers_(*this) {}
    staged_pair(const staged_pair&) = delete;
    staged_pair& operator=(const staged_pair&) = delete;

    /// See roce::staged_memory.
    bool reaches(const keys::located& memory) const noexcept;
    refusal write(const keys::located& to, std::span<const std::uint8_t> bytes) { return write(to, bytes, false); }
    refusal read(const keys::located& from, const roce::wanted_bytes& what, std::span<const std::uint8_t>& bytes)
    {
        return read(from, what, bytes, false);
    }
    /// The same, for requests of the peer.
    roce::staged_memory& peers() noexcept { return peers_; }
    /// @param responder  executes requests of the peer; nullptr: these have no sequence numbers
    /// @param front      of the packets of the queue pair; both until the next call
    void follow(roce::responder* responder, const net::roce_front* front) noexcept
    {
        responder_ = responder;
        front_ = front;
    }

    /// Whether the queue pair has ever copied, since restart(). A queue pair that uses host memory only stops here.
    bool used() const noexcept { return state_ != nullptr; }
    /// What waits for the copies so far waits until this is over. Begins the copy of what is collected.
    std::uint64_t ticket()
    {
        submit();
        return state_ ? state_->last : 0;
    }
    /// Begins the copy of what is collected.
    void submit()
    {
        if (state_)
            copies_.submit(state_);
    }
    bool is_over(std::uint64_t ticket) const noexcept { return ticket <= copies_.over(); }
    /// The same at once: perhaps there is no turn any more.
    void stop_collecting()
    {
        if (pending())
            copies_.end_all();
    }
    /// From now on, ticket() also stands for the copies that other queue pairs of the engine have begun.
    void join_all();
    /// From now on, ticket() also stands for the copies that other queue pairs of the engine have begun, if there are
    /// such.
    void join_pending()
    {
        if (copies_.pending())
            join_all();
    }
    /// Whether copies are under way, or are to begin.
    bool pending() const noexcept { return state_ && (state_->collected.by != nullptr || !is_over(state_->last)); }
    /// Whether nothing has to wait: no copy is under way, and none has failed.
    bool settled() const noexcept { return !state_ || (!pending() && !failed()); }
    /// Why what waits for this ticket has failed; none: it has not.
    refusal failure_of(std::uint64_t ticket) const noexcept
    {
        return state_ && state_->failed.why != refusal::none && ticket >= state_->failed.ticket ? state_->failed.why
                                                                                                : refusal::none;
    }
    bool failed() const noexcept { return state_ && state_->failed.why != refusal::none; }
    /// Whether a copy has failed, and the side that has asked for it ends now. That of own entries ends once the ticket
    /// is over: the entry learns the reason first.
    bool ends_now() const noexcept { return failed() && (state_->failed.by_peer || is_over(state_->failed.ticket)); }
    /// The first copy that has failed. @pre failed()
    const failed_copy& failure() const noexcept
    {
        if (state_->failed.reads)
            sender_.note_unsent(*state_);
        return state_->failed;
    }
    /// Packets that the queue pair sends in this turn wait for the copies under way, and stay behind its packets that
    /// wait already. Behind a failed copy only a NAK is sent, which does not wait.
    /// @param answers  some acknowledge requests, so that what is collected is copied now
    void begin_sending(bool answers)
    {
        if (answers)
            submit();
        if (must_hold() && !ends_now())
            sender_.hold_for(state_, front_);
    }
    /// The queue pair sleeps: what was fetched ahead is dropped.
    void rest() noexcept
    {
        if (used()) [[unlikely]]
            fetched_ = {};
    }
    /// Forgets all copies: a failure of theirs does not count.
    void restart() noexcept
    {
        rest();
        state_ = nullptr;
    }

 private:
    class of_peer final : public roce::staged_memory {
     public:
        explicit of_peer(staged_pair& pair) noexcept : pair_(pair) {}
        bool reaches(const keys::located& memory) const noexcept override { return pair_.reaches(memory); }
        refusal write(const keys::located& to, std::span<const std::uint8_t> bytes) override
        {
            return pair_.write(to, bytes, true);
        }
        refusal read(const keys::located& from, const roce::wanted_bytes& what,
                     std::span<const std::uint8_t>& bytes) override
        {
            return pair_.read(from, what, bytes, true);
        }
        roce::wanted_bytes part_of_read(std::uint32_t count) override
        {
            const roce::responder::unsent_read read = pair_.responder_->sending();
            constexpr std::uint32_t most = staging_blocks::most_bytes;
            return {.count = count, .ahead = std::min(read.bytes - count, most), .message = read.psn};
        }

     private:
        staged_pair& pair_;
    };

    /// Bytes of a device's memory that were fetched, or are under way.
    struct fetched_bytes {
        staging_block block; ///< none: there are no bytes
        const staged_stream* by = nullptr;
        std::byte *device = nullptr, *host = nullptr; ///< of the first byte
        std::size_t count = 0;
        bool ahead = false; ///< they belong to one message and serve its later packets, too
        bool by_peer = false;
        std::uint32_t message = 0;
        std::uint64_t used = 0; ///< the turn in which they have served a packet
    };
    /// Sequence numbers of messages come again after far more turns.
    static constexpr std::uint64_t most_turns_unused = 4096;

    refusal write(const keys::located& to, std::span<const std::uint8_t> bytes, bool by_peer);
    refusal read(const keys::located& from, const roce::wanted_bytes& what, std::span<const std::uint8_t>& bytes,
                 bool by_peer);
    const std::byte* find_fetched(const staged_stream& by, const std::byte* device, const roce::wanted_bytes& what,
                                  bool by_peer) noexcept;
    const std::byte* fetch(staged_stream& by, std::byte* device, const roce::wanted_bytes& what, bool by_peer);
    void make_state();
    bool must_hold() const noexcept { return state_ && (state_->held != 0 || !is_over(state_->last)); }

    staged_copies& copies_;
    roce_sender& sender_;
    of_peer peers_;
    roce::responder* responder_ = nullptr;
    const net::roce_front* front_ = nullptr;
    std::shared_ptr<copies_of_pair> state_; ///< nullptr: see used()
    fetched_bytes fetched_;
};

} // namespace weftio::nic::soft
