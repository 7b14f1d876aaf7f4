// What the host hears of when a request of the peer, or the receive entry for it, has ended a connection.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "core/counter.hpp"
#include "nic/soft/work/entry.hpp"
#include "roce/responder.hpp"

namespace weftio::nic::soft {

struct responder_failure {
    roce::refused_request request{};
    std::optional<std::uint32_t> entry{}; ///< index of the receive entry that has failed, if one has
    refusal reason = refusal::none;       ///< of that
    std::uint64_t time_ns = 0;            ///< UTC
};

/// In words: which request, which memory, why it was refused, and what mends that.
std::string explain(const responder_failure& failure);
/// The syndrome of the receive entry; without one, that which the peer gets.
std::uint8_t syndrome_of(const responder_failure& failure) noexcept;

/// A bounded queue from the thread of the engine to one reader. Never blocks. A queue pair has one failure until it is
/// restarted: those of `most` restarts are kept, and later ones are lost and counted. The first failure brings the
/// memory: one that finds none is lost and counted, too.
class responder_failures {
 public:
    static constexpr std::uint32_t most = 8;

    void put(const responder_failure& failure) noexcept
    {
        const std::uint32_t at = written_.load(std::memory_order_relaxed);
        const bool full = at - read_.load(std::memory_order_acquire) == most;
        if (!kept_)
            kept_.reset(new (std::nothrow) kept);
        if (kept_)
            kept_->last = failure;
        if (full || !kept_) {
            lost.add(1);
            return;
        }
        kept_->ring[at % most] = failure;
        written_.store(at + 1, std::memory_order_release);
    }
    bool get(responder_failure& failure) noexcept
    {
        const std::uint32_t at = read_.load(std::memory_order_relaxed);
        if (at == written_.load(std::memory_order_acquire))
            return false;
        failure = kept_->ring[at % most];
        read_.store(at + 1, std::memory_order_release);
        return true;
    }

    /// The failure that was put last, whether or not it was read; nullptr: none was. Only the writer's thread.
    const responder_failure* last() const noexcept { return kept_ ? &kept_->last : nullptr; }

    core::counter lost;

 private:
    struct kept {
        std::array<responder_failure, most> ring{};
        responder_failure last;
    };

    std::unique_ptr<kept> kept_; ///< the reader sees it, because it is there before `written_` moves
    std::atomic<std::uint32_t> written_{0}, read_{0};
};

} // namespace weftio::nic::soft
