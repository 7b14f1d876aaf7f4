#include "dpdk/frame_dump.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_mbuf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/write_signals.hpp"
#include "weftio/error.hpp"
#include "wires/file_locks.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uint32_t snap = 262'144; ///< no frame is longer
// Bytes that are locked lie far behind the frames of any file.
constexpr off_t join_byte = off_t{1} << 62, writers_byte = join_byte + 1;

[[noreturn]] void refuse_dump(std::string_view spec, const std::string& path, int why)
{
    const errc code = why == EACCES || why == EPERM || why == EROFS ? errc::permission_denied
                      : why == ENOENT                               ? errc::not_found
                                                                    : errc::device_error;
    if (why == ENXIO)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: port {}: dump is {}, a pipe without a reader; start its reader first", spec, path));
    throw error(code, fmt::format("weftio: port {}: dump: cannot write {}: {}", spec, path, std::strerror(why)));
}

} // namespace

frame_dump::frame_dump(std::string_view spec, const std::string& path) : spec_(spec), path_(path)
{
    try {
        open();
        join();
    } catch (...) {
        if (descriptor_ >= 0)
            ::close(descriptor_);
        throw;
    }
}

frame_dump::~frame_dump()
{
    if (descriptor_ >= 0)
        ::close(descriptor_);
}

void frame_dump::open()
{
    struct stat file {};
    const bool special = ::stat(path_.c_str(), &file) == 0 && !S_ISREG(file.st_mode);
    if (special && !S_ISFIFO(file.st_mode) && !S_ISCHR(file.st_mode))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: dump is {}, not a file; name a file", spec_, path_));
    const int way = special ? O_WRONLY : O_RDWR | O_CREAT; // others are counted by reading
    descriptor_ = ::open(path_.c_str(), way | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        refuse_dump(spec_, path_, errno);
    ::fcntl(descriptor_, F_SETFL, O_APPEND);
    is_file_ = !special;
}

void frame_dump::lock_for_joining()
{
    using namespace std::chrono_literals;
    for (const auto end = std::chrono::steady_clock::now() + 2s; !wires::try_lock(descriptor_, join_byte);) {
        if (errno != EAGAIN)
            return; // a file system without locks: nobody else writes
        if (std::chrono::steady_clock::now() > end)
            throw error(
                errc::in_use,
                fmt::format(
                    "weftio: port {}: dump: another process has been opening {} for 2 s; end it, or name another file",
                    spec_, path_));
        std::this_thread::sleep_for(1ms);
    }
}

/// Begins the file, or adds an interface to the section that others are writing.
void frame_dump::join()
{
    bool first = true;
    if (is_file_) {
        lock_for_joining();
        first = !wires::locked_by_others(descriptor_, writers_byte, 1);
        if (first && ::ftruncate(descriptor_, 0) != 0)
            refuse_dump(spec_, path_, errno);
        wires::share_lock(descriptor_, writers_byte);
    }
    if (first)
        blocks_.section({});
    else
        interface_ = count_interfaces();
    blocks_.interface(fmt::format("{} of process {}", spec_, ::getpid()), snap);
    append(blocks_.file().size());
    if (descriptor_ < 0)
        throw error(errc::device_error,
                    fmt::format("weftio: port {}: dump: cannot write {}; see the log", spec_, path_));
    if (is_file_)
        wires::release_lock(descriptor_, join_byte);
}

/// How many interfaces the file describes. Frames may be appended meanwhile, and no interfaces.
std::uint32_t frame_dump::count_interfaces()
{
    std::uint32_t count = 0;
    std::array<std::uint32_t, 2> block{}; // type and length
    off_t at = 0;
    for (; ::pread(descriptor_, block.data(), sizeof block, at) == sizeof block; at += block[1]) {
        if ((at == 0) != (block[0] == net::pcapng_builder::section_header) || block[1] < 12 || block[1] % 4 != 0)
            throw error(errc::invalid_argument, fmt::format("weftio: port {}: dump is {}, which other ports write, but "
                                                            "it is no longer their pcapng file; name another file",
                                                            spec_, path_));
        count += block[0] == net::pcapng_builder::interface_description;
    }
    return count;
}

void frame_dump::received(const rte_mbuf* const* frames, std::uint16_t count) noexcept
{
    const std::scoped_lock one_at_a_time(mutex_);
    add(frames, count, net::frame_direction::received);
    write(count);
}

/// Makes blocks of the frames.
void frame_dump::add(const rte_mbuf* const* frames, std::uint16_t count, net::frame_direction direction) noexcept
try {
    blocks_.clear();
    ends_.clear();
    const std::uint64_t now_ns = core::utc_now_ns();
    for (std::uint16_t at = 0; at != count && descriptor_ >= 0; ++at) {
        const rte_mbuf& frame = *frames[at];
        std::uint32_t kept = frame.data_len;
        if (frame.nb_segs != 1) {
            kept = std::min(frame.pkt_len, snap);
            joined_.resize(kept);
        }
        const void* const begin = rte_pktmbuf_read(&frame, 0, kept, joined_.data());
        blocks_.add({static_cast<const std::uint8_t*>(begin), kept}, frame.pkt_len, now_ns, direction, interface_);
        ends_.push_back(blocks_.file().size());
    }
} catch (const std::exception&) { // no memory
    give_up(ENOMEM);
}

/// Writes the first frames of those that were added.
void frame_dump::write(std::uint16_t frames) noexcept
{
    if (descriptor_ >= 0 && frames != 0)
        append(ends_[frames - 1u]);
}

/// Appends bytes of blocks_. A part that is written and no more is cut off, so that the file ends with a whole block.
void frame_dump::append(std::size_t bytes) noexcept
{
    const core::no_write_signals only_fails;
    std::size_t written = 0;
    while (written != bytes) {
        const ssize_t result = ::write(descriptor_, blocks_.file().data() + written, bytes - written);
        if (result < 0 && errno == EINTR)
            continue;
        if (result < 0) {
            const int why = errno;
            only_fails.take();
            struct stat file {};
            const off_t end = ::lseek(descriptor_, 0, SEEK_CUR);
            if (is_file_ && written != 0 && ::fstat(descriptor_, &file) == 0 && file.st_size == end)
                static_cast<void>(::ftruncate(descriptor_, end - static_cast<off_t>(written)));
            return give_up(why);
        }
        written += static_cast<std::size_t>(result);
    }
}

void frame_dump::give_up(int why) noexcept
{
    core::log_or_lose(log_level::error, [&] {
        return fmt::format("weftio: port {}: dump: writing to {} stopped: {}", spec_, path_, std::strerror(why));
    });
    ::close(std::exchange(descriptor_, -1));
}

} // namespace weftio::dpdk
