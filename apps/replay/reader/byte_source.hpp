// Where the bytes of a capture come from: a file, a pipe, and what gzip, zstd, xz or bzip2 made of either.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace weftio::replay {

/// A file that cannot be opened; what() is one sentence for the user.
struct open_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A stream of bytes. One thread at a time.
class byte_source {
 public:
    virtual ~byte_source() = default;
    /// Reads 1 to `bytes` bytes; blocks until there are some. Returns 0 at the end, after a failure, and once asked to
    /// stop.
    virtual std::size_t read(std::byte* to, std::size_t bytes) = 0;
    /// Passes over at most `bytes` bytes without reading them; returns how many. 0: cannot, or nothing left.
    virtual std::uint64_t skip(std::uint64_t) { return 0; }
    /// Goes back to the first byte. Returns false where that cannot be done.
    virtual bool rewind() { return false; }
    /// Which part of the whole has been read, 0 to 1; nothing where the whole is unknown, as of a pipe.
    virtual std::optional<double> share() const { return std::nullopt; }
    /// Why the stream ended before its end, empty when it did not.
    const std::string& failure() const noexcept { return failure_; }

 protected:
    std::string failure_;
};

/// Opens `path`, `-` for standard input, and looks through gzip (RFC 1952), zstd (RFC 8878), xz and bzip2, recognized
/// by their magic.
/// A wait for a pipe ends within 20 ms of `*stop` becoming true. @throws open_error
std::unique_ptr<byte_source> open_source(const std::string& path, const std::atomic<bool>* stop = nullptr);

/// What `from` holds, inflated: one or more gzip members.
std::unique_ptr<byte_source> make_gzip_source(std::unique_ptr<byte_source> from);
/// What `from` holds, decompressed: one or more zstd frames, with windows of up to 128 MiB.
std::unique_ptr<byte_source> make_zstd_source(std::unique_ptr<byte_source> from);
/// What `from` holds, decompressed: one or more xz streams that need up to 256 MiB.
std::unique_ptr<byte_source> make_xz_source(std::unique_ptr<byte_source> from);
/// What `from` holds, decompressed: one or more bzip2 streams.
std::unique_ptr<byte_source> make_bzip2_source(std::unique_ptr<byte_source> from);
/// `bytes` bytes at `data`, which must outlive the source.
std::unique_ptr<byte_source> make_memory_source(const void* data, std::size_t bytes);

} // namespace weftio::replay
