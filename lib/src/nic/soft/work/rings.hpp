// Rings as the engine accesses them: CPU addresses of the memory in nic/rings.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "nic/rings.hpp"

namespace weftio::nic::soft {

class completion_ring;

/// Where a queue completes when its ring has no completions of its own.
struct completions_at {
    completion_ring* ring = nullptr;
    bool only_asked = false;
    std::uint32_t user_index = 0;
};

/// A ring of entries (docs/formats.md, "Entries").
struct entry_ring {
    const std::uint32_t* words = nullptr; ///< depth x 16, written by the kernel
    std::uint32_t depth = 0;
    std::uint32_t queue = 0; ///< number of the queue
};

/// See nic::doorbell_memory.
struct doorbell_words {
    std::array<std::uint64_t*, 2> at{}; ///< nullptr: none

    bool operator==(const doorbell_words&) const = default;
    explicit operator bool() const noexcept { return at[0] != nullptr; }
};

/// A word of a doorbell page, as the CPU sees it: see doorbell_page.
struct page_word {
    std::uint64_t* page = nullptr; ///< the first word of the page; nullptr: there is none
    std::uint32_t at = 0;

    explicit operator bool() const noexcept { return page != nullptr; }
};

/// A send ring. Its memory stays valid until the queue is removed or has another ring.
struct tx_ring {
    entry_ring entries;
    /// Doorbell record, which the kernel writes: blocks committed so far, low 16 bits, big-endian.
    const std::uint32_t* dbrec = nullptr;
    doorbell_words doorbell{};
    page_word bell{};                 ///< what kernels ring, unless they ring `doorbell`
    weftio_cqe* completion = nullptr; ///< the collapsed completion, which the NIC overwrites; nullptr: `completions`
    completions_at completions{};
    std::uint64_t horizon_ns = 0;
    protection_domain domain{}; ///< entries may name regions of this domain only
};

/// Returns the same ring with CPU addresses. @param who  kind of the queue, for the error text
/// @param number  of the queue
/// @throws weftio::error errc::not_reachable the CPU cannot access the memory
tx_ring cpu_ring(const send_ring& ring, std::string_view who, std::uint32_t number = 0);

/// @throws weftio::error errc::not_reachable the CPU cannot access the memory
void require_cpu(const ring_memory& memory, std::string_view who);

} // namespace weftio::nic::soft
