// What the host hears of when a request of the peer, or the receive entry for it, has ended a connection.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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
/// restarted: those of `most` restarts are kept, and later ones are lost and counted.
class responder_failures {
 public:
    static constexpr std::uint32_t most = 8;

    void put(const responder_failure& failure) noexcept
    {
        const std::uint32_t at = written_.load(std::memory_order_relaxed);
        if (at - read_.load(std::memory_order_acquire) == most) {
            lost.add(1);
            return;
        }
        failures_[at % most] = failure;
        written_.store(at + 1, std::memory_order_release);
    }
    bool get(responder_failure& failure) noexcept
    {
        const std::uint32_t at = read_.load(std::memory_order_relaxed);
        if (at == written_.load(std::memory_order_acquire))
            return false;
        failure = failures_[at % most];
        read_.store(at + 1, std::memory_order_release);
        return true;
    }

    core::counter lost;

 private:
    std::array<responder_failure, most> failures_{};
    std::atomic<std::uint32_t> written_{0}, read_{0};
};

} // namespace weftio::nic::soft
