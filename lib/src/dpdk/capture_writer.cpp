#include "dpdk/capture_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_mbuf.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/clock.hpp"
#include "core/write_signals.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uint16_t batch = 64; // a frame takes two vectors, and the kernel accepts 1,024
constexpr std::array<std::uint32_t, 6> file_head{0xa1b23c4d, 4 << 16 | 2, 0, 0, 65535, 1}; // nanoseconds, 2.4, Ethernet

/// Header of a frame's record: seconds, nanoseconds, bytes in the file, bytes on the wire.
using record_head = std::array<std::uint32_t, 4>;

/// Writes all vectors. Returns the bytes that the file took; if some are missing, errno says why.
std::size_t write_all(int descriptor, iovec* vectors, int count) noexcept
{
    const core::no_write_signals only_fails;
    std::size_t written = 0;
    while (count != 0) {
        const ssize_t result = ::writev(descriptor, vectors, count);
        if (result < 0 && errno == EINTR)
            continue;
        if (result < 0) {
            const int why = errno;
            only_fails.take();
            errno = why;
            break;
        }
        written += static_cast<std::size_t>(result);
        auto left = static_cast<std::size_t>(result);
        for (; count != 0 && left >= vectors->iov_len; ++vectors, --count)
            left -= vectors->iov_len;
        if (count != 0) {
            vectors->iov_base = static_cast<std::byte*>(vectors->iov_base) + left;
            vectors->iov_len -= left;
        }
    }
    return written;
}

[[noreturn]] void fail(std::string_view spec, const std::string& path, int why)
{
    const errc code = why == EACCES ? errc::permission_denied : why == ENOENT ? errc::not_found : errc::device_error;
    throw error(code, fmt::format("weftio: port {}: cannot write {}: {}", spec, path, std::strerror(why)));
}

/// Opens the file without truncating it, and a pipe without waiting for its reader.
int open_to_write(std::string_view spec, const std::string& path)
{
    struct stat file {};
    if (::stat(path.c_str(), &file) == 0 && S_ISBLK(file.st_mode)) // refused before anything is overwritten
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: port {}: {} is a block device, and writing would destroy its contents; name a file",
                        spec, path));
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == ENXIO && S_ISFIFO(file.st_mode))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: {} is a pipe without a reader; start its reader first", spec, path));
    if (descriptor < 0)
        fail(spec, path, errno);
    ::fcntl(descriptor, F_SETFL, O_WRONLY);
    return descriptor;
}

} // namespace

void require_writable(std::string_view spec, const std::string& path)
{
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0 || !S_ISFIFO(file.st_mode))
        ::close(open_to_write(spec, path));
}

capture_writer::capture_writer(std::string_view spec, const std::string& path) : descriptor_(open_to_write(spec, path))
{
    try {
        begin(spec, path);
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

/// Truncates the file only after the claim: no other port uses it.
void capture_writer::begin(std::string_view spec, const std::string& path)
{
    struct stat file {};
    if (::fstat(descriptor_, &file) != 0)
        fail(spec, path, errno);
    claim_.take(spec, path, file, capture_claim::use::write);
    if (S_ISREG(file.st_mode) && ::ftruncate(descriptor_, 0) != 0)
        fail(spec, path, errno);
    iovec head{const_cast<std::uint32_t*>(file_head.data()), sizeof file_head};
    if (write_all(descriptor_, &head, 1) != sizeof file_head)
        fail(spec, path, errno);
    end_ = sizeof file_head;
}

capture_writer::~capture_writer()
{
    ::close(descriptor_);
}

std::uint16_t capture_writer::write(rte_mbuf** frames, std::uint16_t count) noexcept
{
    std::array<record_head, batch> heads;
    std::array<iovec, 2 * batch> vectors;
    const std::uint64_t now_ns = core::utc_now_ns();
    std::uint16_t taken = 0;
    while (taken != count && failure_ == 0) {
        const std::uint16_t wanted = std::min<std::uint16_t>(count - taken, batch);
        for (std::uint16_t at = 0; at < wanted; ++at) {
            const rte_mbuf& frame = *frames[taken + at]; // mbufs of send queues have one segment
            heads[at] = {static_cast<std::uint32_t>(now_ns / 1'000'000'000),
                         static_cast<std::uint32_t>(now_ns % 1'000'000'000), frame.data_len, frame.data_len};
            vectors[2 * at] = {&heads[at], sizeof heads[at]};
            vectors[2 * at + 1] = {rte_pktmbuf_mtod(&frame, void*), frame.data_len};
        }
        std::size_t left = write_all(descriptor_, vectors.data(), 2 * wanted);
        const int why = errno;
        std::uint16_t whole = 0;
        for (; whole != wanted && left >= sizeof(record_head) + heads[whole][2]; ++whole)
            left -= sizeof(record_head) + heads[whole][2];
        for (std::uint16_t at = 0; at < whole; ++at)
            end_ += static_cast<std::int64_t>(sizeof(record_head) + heads[at][2]);
        rte_pktmbuf_free_bulk(frames + taken, whole);
        taken = static_cast<std::uint16_t>(taken + whole);
        if (whole != wanted) {
            failure_ = why;
            static_cast<void>(::ftruncate(descriptor_, end_)); // fails on a pipe, where nothing can be cut off
        }
    }
    return taken;
}

} // namespace weftio::dpdk
