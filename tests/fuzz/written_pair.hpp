// A queue pair of the software NIC whose rings the input writes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "devices/backend.hpp"
#include "expect.hpp"
#include "guarded.hpp"
#include "nic/soft/rdma/rdma_unit.hpp"
#include "nic/soft/work/completion_ring.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

/// What is unusual about a queue pair.
enum class pair_shape : std::uint8_t {
    usual,
    without_receives, ///< its receive ring has no entries
    of_kernels        ///< completes in its rings, without a completion queue
};

/// Mostly with a completion queue of its own. The NIC's mapping of its rings and records is read-only. It stays for all
/// inputs; each begins with begin_again().
class written_pair {
 public:
    static constexpr std::uint32_t send_blocks = 64, receive_entries = 16, receive_segments = 2, completions = 16;

    /// @param shared  whose entries it receives into; nullptr: those of its own ring
    written_pair(nic::soft::rdma_unit& unit, rdma_service service, nic::soft::linked_receives* shared,
                 pair_shape shape = pair_shape::usual)
        : unit_(unit), shared_(shared), shape_(shape)
    {
        make_completions(completion_overrun::hold);
        number_ = unit.add(rings(), service);
    }

    std::uint32_t number() const { return number_; }
    nic::soft::any_pair& nic() const { return *unit_.find(number_); }
    bool has_shared() const { return shared_ != nullptr; }
    /// To RESET, with rings and a completion queue in which nothing is written.
    void begin_again(completion_overrun policy)
    {
        reset();
        make_completions(policy);
        received_before_ = nic().counters().received;
        failed_before_ = nic().counters().receive_failed;
    }
    void reset()
    {
        unit_.modify(number_, rdma_state::reset, {}, rings());
        sends_ = receives_ = 0;
        word(record_.kernel(), 0) = word(record_.kernel(), 1) = 0;
        failed_before_ = nic().counters().receive_failed;
        has_lied_ = false;
    }
    void modify(rdma_state to, const nic::rdma_connection& how) { unit_.modify(number_, to, how, rings()); }
    void start(const nic::rdma_connection& how)
    {
        for (const rdma_state to : {rdma_state::init, rdma_state::ready_to_receive, rdma_state::ready_to_send})
            modify(to, how);
    }

    bool has_send_room(std::uint32_t blocks) const { return sends_ - nic().dump().completed + blocks <= send_blocks; }
    void post(raw_entry& entry, std::uint32_t opcode, numbers* changes)
    {
        if (!has_send_room(entry.blocks()))
            return;
        const std::uint32_t count = entry.segments * 4;
        entry.control(opcode, sends_, number_, WEFTIO_CE_ALWAYS);
        if (changes)
            entry.mutate(*changes);
        for (std::uint32_t at = 0; at != count; ++at)
            weftio_store_relaxed_u32(&word(send_.kernel(), (sends_ * 16 + at) % (send_blocks * 16)), entry.words[at]);
        sends_ += entry.blocks();
        weftio_store_release_sys_u32(&word(record_.kernel(), 1), weftio_swap32(sends_ & 0xffff));
    }
    /// To its own ring, unless it is full or nothing reads it. @return whether it did
    bool post_receive(const named_region& to)
    {
        if (nic().state() == rdma_state::reset || waiting() >= receive_entries)
            return false;
        raw_entry entry;
        entry.pointer(static_cast<std::uint32_t>(to.bytes), to.key, to.base);
        std::uint32_t* const at = &word(receive_.kernel(), receives_++ % receive_entries * receive_segments * 4);
        for (std::uint32_t each = 0; each != 4; ++each)
            weftio_store_relaxed_u32(at + each, entry.word(1, each));
        weftio_store_relaxed_u32(at + 5, weftio_swap32(WEFTIO_LKEY_INVALID));
        set_receives(receives_);
        return true;
    }
    void lie_about_receives(std::uint32_t more)
    {
        has_lied_ = true;
        set_receives(receives_ += more);
    }
    /// While lazy, it reads completions but does not tell the NIC.
    void be_lazy(bool lazy) { lazy_ = lazy; }

    /// Calls `each` for all new completions in its queue.
    template <class Each>
    void poll(Each&& each)
    {
        if (shape_ == pair_shape::of_kernels)
            return;
        for (; weftio_cqe_is_published(next().publication, polled_ / completions); ++polled_)
            each(next());
        if (!lazy_)
            weftio_store_release_sys_u32(&word(record_.kernel(), 2), weftio_swap32(polled_ & 0xffffff));
    }
    std::uint64_t received() const { return nic().counters().received - received_before_; }
    /// Whether a message that comes now must take an entry, if one is posted. Its own entries that are done complete
    /// first, and may fill the completion queue.
    bool must_take() const
    {
        const rdma_state now = nic().state();
        const rdma_dump sends = nic().dump();
        return sends.begun - sends.completed < completions && now != rdma_state::reset && now != rdma_state::init &&
               now != rdma_state::error && !lazy_ && !has_lied_ && !ring_->overrun() &&
               nic().counters().receive_failed == failed_before_;
    }
    std::uint32_t waiting() const { return nic().dump().receives_posted; }

 private:
    static std::uint32_t& word(std::byte* page, std::size_t at) { return reinterpret_cast<std::uint32_t*>(page)[at]; }
    const weftio_cqe& next() const
    {
        return reinterpret_cast<const weftio_cqe*>(completion_.kernel())[polled_ % completions];
    }
    void set_receives(std::uint32_t count)
    {
        weftio_store_release_sys_u32(&word(record_.kernel(), 0), weftio_swap32(count & 0xffff));
    }
    static nic::ring_memory memory_at(std::byte* at)
    {
        auto block = std::make_shared<devices::memory_block>(nullptr);
        block->at.cpu = at;
        block->bytes = guarded::page;
        return {.block = std::move(block)};
    }
    void make_completions(completion_overrun policy)
    {
        std::memset(completion_.kernel(), 0xf1, completion_.bytes());
        word(record_.kernel(), 2) = word(record_.kernel(), 3) = 0;
        polled_ = 0;
        lazy_ = false;
        ring_.emplace(nic::completion_memory{.entries = memory_at(completion_.kernel()),
                                             .depth = completions,
                                             .record = memory_at(record_.kernel() + 8),
                                             .overrun = policy},
                      1, news_);
    }
    nic::soft::pair_rings rings()
    {
        const bool queue = shape_ != pair_shape::of_kernels;
        auto* const in_rings = queue ? nullptr : reinterpret_cast<weftio_cqe*>(completion_.kernel());
        const nic::soft::completions_at target{.ring = queue ? &*ring_ : nullptr};
        nic::soft::pair_rings all;
        all.send = {.entries = {.words = &word(send_.nic(), 0), .depth = send_blocks, .queue = number_},
                    .dbrec = &word(record_.nic(), 1),
                    .completion = queue ? nullptr : in_rings + receive_entries,
                    .completions = target};
        all.receive = {.words = shared_ ? nullptr : &word(receive_.nic(), 0),
                       .dbrec = shared_ ? nullptr : &word(record_.nic(), 0),
                       .completions = in_rings,
                       .target = target,
                       .depth = shared_ || shape_ == pair_shape::without_receives ? 0 : receive_entries,
                       .segments = receive_segments,
                       .shared = shared_};
        return all;
    }

    nic::soft::rdma_unit& unit_;
    nic::soft::linked_receives* const shared_;
    const pair_shape shape_;
    guarded send_{guarded::page}, receive_{guarded::page}, record_{guarded::page}, completion_{guarded::page};
    std::vector<nic::soft::completion_ring*> news_;
    std::optional<nic::soft::completion_ring> ring_;
    std::uint32_t number_ = 0, sends_ = 0, receives_ = 0, polled_ = 0;
    std::uint64_t received_before_ = 0, failed_before_ = 0;
    bool lazy_ = false, has_lied_ = false;
};

} // namespace weftio::fuzz
