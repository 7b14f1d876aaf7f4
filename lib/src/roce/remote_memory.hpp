// Memory that a peer may name by a key, as a responder sees it.
#pragma once

#include <cstdint>
#include <span>

#include "weftio/access.hpp"

namespace weftio::roce {

/// Why a peer may not do what it asks for. The peer learns "remote access error"; the reason stays on this side.
enum class key_refusal : std::uint8_t {
    none,
    unknown_key,
    other_domain,   ///< the region belongs to another protection domain than the queue
    no_right,       ///< the region lacks access::remote_write, remote_read or remote_atomic
    outside_region, ///< at least one byte lies outside
    out_of_reach,   ///< the engine cannot do this there: an atomic in memory that is staged, or misaligned for the CPU
    memory_gone,    ///< it was unmapped, or its file truncated, while the region existed
};

/// Bytes that a peer names.
struct remote_range {
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0; ///< at most 2^31
};

/// Every call checks key, domain, rights and range anew: a region may be removed between two packets of a message.
/// Called by one thread; never blocks. An address that a call gives is good until the responder returns.
class remote_memory {
 public:
    /// Whether the peer has the right `needed` to all of the bytes.
    virtual key_refusal check(const remote_range& range, access needed) = 0;
    /// Writes bytes.size() == range.bytes, or nothing; of memory_gone a part may be written.
    virtual key_refusal write(const remote_range& range, std::span<const std::uint8_t> bytes) = 0;
    /// Where the bytes can be read, by core::guarded(). Changes `bytes` on success only.
    virtual key_refusal read(const remote_range& range, std::span<const std::uint8_t>& bytes) = 0;
    /// Where the word lies, for core::guarded(). Changes `word` on success only. @pre address is a multiple of 8
    virtual key_refusal word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word) = 0;
    /// Takes the key from the peer (SEND with invalidate).
    virtual key_refusal invalidate(std::uint32_t key) = 0;

 protected:
    ~remote_memory() = default;
};

} // namespace weftio::roce
