// Sources of a capture's bytes: a file or a pipe, compressed by gzip, zstd, xz or bzip2 or not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace weftio::replay {

/// Thrown if a file cannot be opened; what() is one sentence for the user.
struct open_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A stream of bytes. One thread at a time.
class byte_source {
 public:
    virtual ~byte_source() = default;
    /// Reads 1 to `bytes` bytes; blocks until there are some. Returns 0 at the end, after a failure, and after a
    /// request to stop.
    virtual std::size_t read(std::byte* to, std::size_t bytes) = 0;
    /// Skips at most `bytes` bytes without reading them. Returns how many; 0 at the end, or if the source cannot skip.
    virtual std::uint64_t skip(std::uint64_t) { return 0; }
    /// Goes back to the first byte. Returns false if the source cannot.
    virtual bool rewind() { return false; }
    /// Fraction of the source that has been read, 0 to 1; nothing if its size is unknown, as of a pipe.
    virtual std::optional<double> share() const { return std::nullopt; }
    /// Why the stream ended early; empty if it did not.
    const std::string& failure() const noexcept { return failure_; }

 protected:
    std::string failure_;
};

/// Opens `path` (`-`: standard input) and decompresses gzip (RFC 1952), zstd (RFC 8878), xz and bzip2, recognized by
/// their magic numbers. A read from a pipe returns within 20 ms of `*stop` becoming true. @throws open_error
std::unique_ptr<byte_source> open_source(const std::string& path, const std::atomic<bool>* stop = nullptr);

/// Decompresses one or more gzip members.
std::unique_ptr<byte_source> make_gzip_source(std::unique_ptr<byte_source> from);
/// Decompresses one or more zstd frames with windows of up to 128 MiB.
std::unique_ptr<byte_source> make_zstd_source(std::unique_ptr<byte_source> from);
/// Decompresses one or more xz streams that need up to 256 MiB.
std::unique_ptr<byte_source> make_xz_source(std::unique_ptr<byte_source> from);
/// Decompresses one or more bzip2 streams.
std::unique_ptr<byte_source> make_bzip2_source(std::unique_ptr<byte_source> from);
/// Reads `bytes` bytes at `data`, which must outlive the source.
std::unique_ptr<byte_source> make_memory_source(const void* data, std::size_t bytes);

} // namespace weftio::replay
