// Memory that a peer may name by a key, as a responder sees it.
#pragma once

#include <cstdint>
#include <span>

#include "weftio/access.hpp"
#include "weftio/refusal.hpp"

namespace weftio::roce {

/// Bytes that a peer names.
struct remote_range {
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0; ///< at most 2^31
};

/// Every call returns why the peer may not do what it asks for, which the NAK tells in part. It checks key, domain,
/// rights and range anew: a region may be removed between two packets of a message. Called by one thread; never
/// blocks. An address that a call gives is good until the responder returns.
class remote_memory {
 public:
    /// Whether the peer has the right `needed` to all of the bytes.
    virtual refusal check(const remote_range& range, access needed) = 0;
    /// Writes bytes.size() == range.bytes, or nothing; of memory_gone a part may be written.
    virtual refusal write(const remote_range& range, std::span<const std::uint8_t> bytes) = 0;
    /// Where the bytes can be read, by core::guarded(). Changes `bytes` on success only.
    virtual refusal read(const remote_range& range, std::span<const std::uint8_t>& bytes) = 0;
    /// Where the word lies, for core::guarded(). Changes `word` on success only. @pre address is a multiple of 8
    virtual refusal word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word) = 0;
    /// Takes the key from the peer (SEND with invalidate).
    virtual refusal invalidate(std::uint32_t key) = 0;

 protected:
    ~remote_memory() = default;
};

} // namespace weftio::roce
