// Memory that a peer names by key, as a responder sees it.
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

/// Each call returns why the request is refused; the NAK tells the peer only a part of that. Each call checks key,
/// domain, rights and range again, because a region may be removed between two packets of a message. One thread only;
/// never blocks. An address that a call returns is valid until the responder returns.
class remote_memory {
 public:
    /// Whether the peer has the right `needed` to all of the bytes.
    virtual refusal check(const remote_range& range, access needed) = 0;
    /// Writes range.bytes bytes, which is bytes.size(), or nothing. On memory_gone a part may be written.
    virtual refusal write(const remote_range& range, std::span<const std::uint8_t> bytes) = 0;
    /// Returns in `bytes` where the range can be read with core::guarded(). Changes `bytes` on success only.
    virtual refusal read(const remote_range& range, std::span<const std::uint8_t>& bytes) = 0;
    /// Returns in `word` the address of the word, for core::guarded(). Changes `word` on success only. @pre address is
    /// a multiple of 8
    virtual refusal word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word) = 0;
    /// Whether invalidate() may be called.
    virtual refusal may_invalidate(std::uint32_t key) = 0;
    /// Invalidates the key of a window (SEND with invalidate), if it is still valid.
    virtual void invalidate(std::uint32_t key) = 0;

 protected:
    ~remote_memory() = default;
};

} // namespace weftio::roce
