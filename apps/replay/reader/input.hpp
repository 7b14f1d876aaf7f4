// A window that moves over a byte source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reader/byte_source.hpp"

namespace weftio::replay {

/// Looks ahead in a stream. Holds 256 KiB, more only when more is asked for. One thread at a time.
class input {
 public:
    explicit input(std::unique_ptr<byte_source> source);

    /// The next `bytes` bytes, fewer where the stream ends. Valid until the next call of any kind.
    std::span<const std::byte> peek(std::size_t bytes);
    /// Moves on. @pre not more than the last peek() gave
    void consume(std::size_t bytes) noexcept;
    /// Moves on by at most `bytes`, by seeking where that is possible; returns by how much.
    std::uint64_t skip(std::uint64_t bytes);
    /// Bytes passed so far; of a compressed file, after decompression.
    std::uint64_t offset() const noexcept { return offset_; }
    /// Why the stream ended before its end, empty when it did not.
    const std::string& failure() const noexcept { return source_->failure(); }
    /// Which part of the source has been read into the window, 0 to 1; nothing where that is unknown.
    std::optional<double> share() const { return source_->share(); }
    /// Goes back to the first byte. Returns false where that cannot be done.
    bool rewind();

 private:
    void make_room(std::size_t bytes);

    std::unique_ptr<byte_source> source_;
    std::vector<std::byte> window_;
    std::size_t begin_ = 0, end_ = 0;
    std::uint64_t offset_ = 0;
};

} // namespace weftio::replay
