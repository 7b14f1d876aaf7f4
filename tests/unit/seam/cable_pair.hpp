// The queue pairs of the cable NIC: each finds its peer at the same port, and an entry is executed at once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cable_completions.hpp"
#include "cable_windows.hpp"

namespace weftio::test {

/// Value of the doorbell while it has not been rung: no queue has that number and index.
inline constexpr std::uint64_t nothing_rung = ~std::uint64_t{0};

class cable_pair final : public nic::rdma_queue {
 public:
    cable_pair(std::shared_ptr<nic::backend> port, cable_tables& tables, const nic::rdma_rings& rings,
               rdma_service service);

    std::uint32_t number() const noexcept override { return number_; }
    nic::inline_turn turn() noexcept override { return turn_at(*port_, *this); }
    void run() { port_->turn(); }
    std::uint64_t* doorbell() const noexcept override { return static_cast<std::uint64_t*>(bell_.at.device); }
    std::uint32_t ring_number() const noexcept override { return ring_number_; }
    void stop(std::uint32_t ring) override;
    std::string describe(std::uint32_t ring) const override;
    void close() noexcept override;
    bool failed() const override { return state().state == rdma_state::error; }
    void stop_sending() override { stop(ring_number_); }
    void restart(const nic::send_ring& ring) override { restart({.send = ring, .receive = rings_.receive}); }
    void restart(const nic::rdma_rings& rings) override;
    bool next(nic::send_outcome& outcome) override;
    void modify(rdma_state to, const nic::rdma_connection& how) override;
    standing state() const override;
    rdma_counters counters() const override;
    std::uint32_t windows() const override;

    unsigned execute_all();
    /// Fails this queue pair if one of its completion queues has overrun.
    void end_if_overrun();
    /// In ERR: completes all posted receives as flushed.
    void flush_receives();

 private:
    using bytes = std::vector<std::uint8_t>;
    /// Result of an entry. `waits`: it must be retried later.
    struct result {
        std::uint8_t syndrome = 0;
        bool waits = false;
        bool fails_peer = false;
        std::uint32_t bytes = 0;
    };
    struct entry {
        std::array<std::uint32_t, 256> words{}; ///< in host byte order
        std::uint32_t opcode = 0, segments = 0;
        std::uint32_t blocks() const { return (segments + 3) / 4; }
        std::uint64_t number_at(std::uint32_t word) const { return std::uint64_t{words[word]} << 32 | words[word + 1]; }
        bool asks() const { return (words[2] & WEFTIO_CE_ALWAYS) != 0; }
        bool tells_host() const { return (words[2] & WEFTIO_CE_ALWAYS_AND_EVENT) == WEFTIO_CE_ALWAYS_AND_EVENT; }
    };
    struct piece {
        std::uint8_t* at;
        std::uint32_t bytes;
    };

    void begin_rings();
    void read_doorbell_record();
    std::uint32_t outstanding() const { return (submitted_ - done_) & 0xffff; }
    bool read(entry& out) const;
    result execute(const entry& what);
    result write_or_send(const entry& what, cable_pair& peer, bytes message);
    result read_or_change(const entry& what, cable_pair& peer);
    std::optional<cable_pair*> find_peer(result& out) const;
    bool local_pieces(const entry& what, std::uint32_t segment, access rights, std::vector<piece>& out) const;
    bool gather(const entry& what, std::uint32_t segment, bytes& out) const;
    std::uint8_t* find(std::uint32_t key, std::uint64_t address, std::uint64_t count, access rights) const;
    std::uint8_t* find_for_peer(std::uint32_t key, std::uint64_t address, std::uint64_t count, access rights) const;
    cable_window_user as_window_user() const { return {number_, rings_.send.domain, rings_.windows}; }
    void place(std::uint8_t* at, const std::uint8_t* from, std::size_t count);
    result read_and_drop(const entry& what) const;
    result change_window(const entry& what);
    result send_and_invalidate(const entry& what, cable_pair& peer, const bytes& message);
    bool have_room(const cable_pair& peer, bool receives) const;
    bool has_receive() const;
    std::uint8_t receive(const bytes* message, cable_completion what);
    void complete_receive(cable_completion what);
    void complete(const entry& what, const result& how);
    void fail();
    cable_completions* queue_of(const nic::completion_target& target) const;

    const std::shared_ptr<nic::backend> port_;
    cable_tables& tables_;
    nic::rdma_rings rings_;
    devices::memory_block bell_; ///< doorbell; the NIC resets it after it has read it
    cable_completions *sends_ = nullptr, *receives_ = nullptr;
    nic::rdma_connection to_;
    rdma_state state_ = rdma_state::init;
    std::uint32_t number_ = 0, ring_number_ = 0, submitted_ = 0, done_ = 0, received_ = 0;
    rdma_counters counts_;
    std::deque<nic::send_outcome> outcomes_;
};

} // namespace weftio::test
