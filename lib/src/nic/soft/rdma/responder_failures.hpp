// Reports to the host that a request of the peer, or its receive entry, has ended a connection.
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
    std::optional<std::uint32_t> entry{}; ///< index of the failed receive entry, if any
    refusal reason = refusal::none;       ///< why that entry failed
    std::uint64_t time_ns = 0;            ///< UTC
};

/// Text of a failure: which request, which memory, why it was refused, and how to fix it.
std::string explain(const responder_failure& failure);
/// The syndrome of the receive entry; without one, that of the NAK to the peer.
std::uint8_t syndrome_of(const responder_failure& failure) noexcept;

/// A bounded queue from the engine's thread to one reader. Never blocks. A queue pair has at most one failure until its
/// restart. The queue keeps `most` failures; later ones are lost and counted. Memory is allocated for the first
/// failure; if there is none, the failure is lost and counted.
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

    /// The last failure that was put, whether it was read or not; nullptr: none. Writer's thread only.
    const responder_failure* last() const noexcept { return kept_ ? &kept_->last : nullptr; }

    core::counter lost;

 private:
    struct kept {
        std::array<responder_failure, most> ring{};
        responder_failure last;
    };

    std::unique_ptr<kept> kept_; ///< the reader sees it: it is set before `written_` moves
    std::atomic<std::uint32_t> written_{0}, read_{0};
};

} // namespace weftio::nic::soft
