// A window over a byte source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reader/byte_source.hpp"

namespace weftio::replay {

/// Reads ahead in a stream. Buffers 256 KiB, more only if more is requested. One thread at a time.
class input {
 public:
    explicit input(std::unique_ptr<byte_source> source);

    /// The next `bytes` bytes, fewer at the end of the stream. Valid until the next call of any kind.
    std::span<const std::byte> peek(std::size_t bytes);
    /// Consumes bytes. @pre at most as many as the last peek() returned
    void consume(std::size_t bytes) noexcept;
    /// Skips at most `bytes` bytes, by seeking if possible. Returns how many.
    std::uint64_t skip(std::uint64_t bytes);
    /// Bytes consumed so far; after decompression, if the file is compressed.
    std::uint64_t offset() const noexcept { return offset_; }
    /// Why the stream ended early; empty if it did not.
    const std::string& failure() const noexcept { return source_->failure(); }
    /// Fraction of the source read into the window, 0 to 1; nothing if unknown.
    std::optional<double> share() const { return source_->share(); }
    /// Goes back to the first byte. Returns false if the source cannot.
    bool rewind();

 private:
    void make_room(std::size_t bytes);

    std::unique_ptr<byte_source> source_;
    std::vector<std::byte> window_;
    std::size_t begin_ = 0, end_ = 0;
    std::uint64_t offset_ = 0;
};

} // namespace weftio::replay
