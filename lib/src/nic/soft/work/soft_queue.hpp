// What all kinds of queues of the software NIC share, as the public objects use them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "nic/backend.hpp"
#include "nic/soft/work/doorbell_pages.hpp"
#include "nic/soft/work/rings.hpp"
#include "nic/soft/work/send_events.hpp"

namespace weftio::nic::soft {

/// One queue: its number and its present ring. A derived class adds counters, texts, and how its ring is made,
/// restarted and removed.
///
/// @tparam Seam  the interface to implement: receive_queue, eth_send_queue, ...
/// @tparam Place  where the queue runs, and what keeps its engine alive: at_port or at_dma. It has may_end(),
///   is_inline(), where(), doorbells(), between_turns() and between_all_turns()
/// @tparam Work  what an engine drives, with stop(): rx_queue, tx_queue, ...
template <class Seam, class Place, class Work>
class soft_queue : public Seam, protected Place {
 public:
    std::uint32_t number() const noexcept override { return number_; }
    std::uint32_t ring_number() const noexcept override { return ring_number_; }

    void stop(std::uint32_t ring) override
    {
        Place::between_turns([&] {
            if (ring == ring_number_)
                queue_->stop();
        });
    }

    std::string describe(std::uint32_t ring) const override
    {
        std::string text = fmt::format("{} {}{}", kind_, number_, Place::where());
        Place::between_turns([&] { text += ring == ring_number_ ? ": " + progress() : ": reset or closed meanwhile"; });
        return text;
    }

    void close() noexcept override
    {
        if (!Place::may_end())
            return;
        drain();
        Place::between_all_turns([&] {
            remove();
            queue_ = nullptr;
            ++ring_number_;
        });
    }

 protected:
    /// @param kind  "eth_rxq", for messages. The constructor of the derived class sets number_ and queue_.
    template <class Owner>
    soft_queue(const char* kind, Owner&& owner) : Place(std::forward<Owner>(owner)), kind_(kind)
    {}

    /// For turn(): a kernel's call runs `queue->run_turn()` in inline mode.
    template <class Queue>
    inline_turn turn_of(Queue* queue) const noexcept
    {
        if (!Place::is_inline())
            return {};
        return {.turn = [](void* context) { static_cast<Queue*>(context)->run_turn(); }, .context = queue};
    }

    const char* const kind_;
    std::uint32_t number_ = 0;
    std::mutex changing_;           ///< held while the queue is restarted or moved
    Work* queue_ = nullptr;         ///< constant until close(), which makes it nullptr
    std::uint32_t ring_number_ = 0; ///< changes only between two turns of the engine that the queue is at

 private:
    /// What the present ring has done, for describe(). Called between two turns.
    virtual std::string progress() const = 0;
    /// Stops the queue, and blocks until all entries that were handed over have come back, at most 1 s. Returns whether
    /// they have.
    virtual bool drain() { return true; }
    /// Removes the queue from its engine. Called between two turns of all engines.
    virtual void remove() noexcept = 0;
};

/// A queue whose entries an engine executes. @tparam Work  with failed() and events(), too
template <class Seam, class Place, class Work>
class soft_executed_queue : public soft_queue<Seam, Place, Work> {
 public:
    std::uint64_t* doorbell() const noexcept override { return doorbell_->device(); }

    bool failed() const override
    {
        bool failed = false;
        Place::between_turns([&] { failed = queue_->failed(); });
        return failed;
    }

    void stop_sending() override
    {
        Place::between_turns([&] { queue_->stop(); });
    }

    /// Send step 7: takes the next event and converts it to text for the host.
    bool next(send_outcome& outcome) override
    {
        send_event event;
        if (!queue_->events().get(event))
            return false;
        outcome = {.position = event.position, .syndrome = 0, .text = {}, .time_ns = event.time_ns};
        if (event.reason != refusal::none) {
            outcome.reason = event.reason;
            outcome.syndrome = core::syndrome_of(event.reason);
            outcome.text = fmt::format("weftio: {} {}: entry at position {} failed: {}", this->kind_, this->number_,
                                       event.position, words_of(event));
        }
        return true;
    }

 protected:
    /// @param ring  the first one of the queue
    template <class Owner>
    soft_executed_queue(const char* kind, Owner&& owner, const send_ring& ring)
        : soft_queue<Seam, Place, Work>(kind, std::forward<Owner>(owner)), ring_(ring),
          doorbell_(Place::doorbells().take(ring.entries.block->owner))
    {}
    using soft_queue<Seam, Place, Work>::queue_;
    /// The ring by its CPU addresses. @throws weftio::error errc::not_reachable
    tx_ring cpu_ring(const send_ring& ring) const
    {
        tx_ring made = soft::cpu_ring(ring, this->kind_, this->number_);
        if (!made.doorbell)
            made.bell = doorbell_->word();
        return made;
    }

    send_ring ring_; ///< the present ring; keeps its memory alive

 private:
    /// The text of a failure: its reason, with the values that belong to it.
    virtual std::string words_of(const send_event& event) const { return explain(event.reason); }

    const std::shared_ptr<const soft::doorbell> doorbell_;
};

} // namespace weftio::nic::soft
