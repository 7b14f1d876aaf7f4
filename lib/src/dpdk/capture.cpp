#include "dpdk/capture.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/log.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uint32_t magic_us = 0xa1b2c3d4, magic_ns = 0xa1b23c4d, magic_pcapng = 0x0a0d0d0a;
constexpr std::uint32_t link_type_ethernet = 1;
constexpr std::uint32_t longest_record = 256 * 1024; // libpcap's own limit for Ethernet

struct file_closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using file = std::unique_ptr<std::FILE, file_closer>;

/// The 24 bytes at the head of a classic capture.
struct capture_head {
    std::array<std::uint32_t, 6> words{};
    bool swapped = false;

    bool classic()
    {
        swapped = __builtin_bswap32(words[0]) == magic_us || __builtin_bswap32(words[0]) == magic_ns;
        return swapped || words[0] == magic_us || words[0] == magic_ns;
    }
    std::uint32_t word(std::size_t at) const { return swapped ? __builtin_bswap32(words[at]) : words[at]; }
    /// The first, or the second, 16-bit field of a word.
    std::uint32_t half(std::size_t at, bool second) const { return word(at) >> (second == swapped ? 0 : 16) & 0xffff; }
};

/// What a file says of its frames.
struct frame_kind {
    std::uint32_t link_type = link_type_ethernet;
    std::uint32_t fcs_bytes = 0; ///< length of the frame check sequence at the end of each frame
};

/// Walks a pcapng file block by block, reading the first 12 bytes of each: type, length, and the first word of its
/// body. Stops when `wants_more(block)` returns false. Returns false at a block that the file ends inside,
/// or that is malformed.
template <class WantsMore>
bool walk_blocks(std::FILE* in, off_t file_bytes, WantsMore&& wants_more)
{
    constexpr std::uint32_t section_magic = 0x1a2b3c4d;
    capture_head block;
    for (off_t at = 0; at < file_bytes;) {
        if (fseeko(in, at, SEEK_SET) != 0 || std::fread(block.words.data(), 12, 1, in) != 1)
            return false;
        if (block.words[0] == magic_pcapng)
            block.swapped = block.words[2] != section_magic;
        std::uint32_t bytes = block.word(1);
        at += bytes;
        if (bytes < 12 || bytes % 4 != 0 || at > file_bytes)
            return false;
        if (!wants_more(block))
            break;
    }
    return true;
}

/// The option if_fcslen of an interface block whose first 12 bytes have been read; 0 if it has none.
std::uint32_t fcs_of_interface(std::FILE* in, const capture_head& block)
{
    constexpr std::uint32_t option_fcslen = 13;
    capture_head option{.words = {}, .swapped = block.swapped};
    fseeko(in, 4, SEEK_CUR); // the snapshot length
    for (std::uint32_t at = 16; at + 8 <= block.word(1) && std::fread(option.words.data(), 4, 1, in) == 1;) {
        const std::uint32_t code = option.half(0, false), bytes = option.half(0, true), padded = (bytes + 3) / 4 * 4;
        if (code == 0)
            break;
        if (code == option_fcslen && bytes == 1) {
            const int value = std::fgetc(in);
            return value == EOF ? 0 : static_cast<std::uint32_t>(value);
        }
        fseeko(in, static_cast<off_t>(padded), SEEK_CUR);
        at += 4 + padded;
    }
    return 0;
}

/// Frames of the first interface; Ethernet frames when the file ends before it has one.
frame_kind pcapng_frames(std::FILE* in, off_t file_bytes)
{
    constexpr std::uint32_t interface_block = 1;
    frame_kind kind;
    walk_blocks(in, file_bytes, [&](const capture_head& block) {
        const bool found = block.word(0) == interface_block;
        if (found)
            kind = {.link_type = block.half(2, false), .fcs_bytes = fcs_of_interface(in, block)};
        return !found;
    });
    return kind;
}

/// Bits 28 to 31 count the FCS in 16-bit words, if bit 26 is set.
frame_kind pcap_frames(std::uint32_t link_type_word)
{
    constexpr std::uint32_t fcs_length_present = 0x04000000;
    return {.link_type = link_type_word & 0xffff,
            .fcs_bytes = link_type_word & fcs_length_present ? (link_type_word >> 28) * 2 : 0};
}

/// Names the kind of a file that cannot be a capture, for the error text; nullptr for a regular file. A pipe is
/// refused, because it would have to be read twice.
const char* irregular(const struct stat& status)
{
    if (S_ISREG(status.st_mode))
        return nullptr;
    return S_ISDIR(status.st_mode) ? "a directory" : "not a regular file";
}

/// @throws error for frames that are not Ethernet. An FCS is only logged: net_pcap passes frames on as they are in the
/// file, without the original length, which would tell how much of the FCS a truncated frame has.
void require_ethernet(std::string_view spec, const std::string& path, const frame_kind& kind)
{
    if (kind.link_type != link_type_ethernet)
        throw error(
            errc::not_supported,
            fmt::format(
                "weftio: port {}: {} has link type {}, not Ethernet (1); convert it with \"tcprewrite --dlt=enet\"",
                spec, path, kind.link_type));
    if (kind.fcs_bytes != 0)
        core::log(log_level::warning,
                  fmt::format("weftio: port {}: the frames of {} end with a frame check sequence of {} bytes, which "
                              "arrives as data; \"weftio-replay {} pcap:tx=NEW.pcap\" writes them without it",
                              spec, path, kind.fcs_bytes, path));
}

} // namespace

std::string builtin_capture_path()
{
    static const int descriptor = [] {
        int memory = memfd_create("weftio-builtin.pcap", MFD_CLOEXEC);
        const std::string_view bytes = builtin_capture();
        if (memory < 0 || write(memory, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            throw error(errc::out_of_memory, fmt::format("weftio: port pcap:builtin: cannot create its memory file: {}",
                                                         std::strerror(errno)));
        return memory;
    }();
    return fmt::format("/proc/self/fd/{}", descriptor);
}

void require_capture(std::string_view spec, const std::string& path)
{
    struct stat status {};
    const char* what = stat(path.c_str(), &status) == 0 ? irregular(status) : nullptr;
    if (what)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: {} is {}; name a capture file", spec, path, what));
    file in(std::fopen(path.c_str(), "rb"));
    if (!in)
        throw error(
            errno == EACCES ? errc::permission_denied : errc::not_found,
            fmt::format(
                "weftio: port {}: cannot read {}: {}; name an existing capture, or pcap:builtin for the built-in one",
                spec, path, std::strerror(errno)));
    capture_head head;
    std::size_t got = std::fread(head.words.data(), 1, sizeof head.words, in.get());
    if (got >= 4 && head.words[0] == magic_pcapng)
        return require_ethernet(spec, path, pcapng_frames(in.get(), status.st_size));
    if (got < sizeof head.words || !head.classic())
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: port {}: {} is not a pcap or pcapng capture ({}); check it with \"capinfos {}\"", spec,
                        path, got < sizeof head.words ? "too short" : "unknown magic number", path));
    require_ethernet(spec, path, pcap_frames(head.word(5)));
}

bool capture_is_damaged(const std::string& path)
{
    file in(std::fopen(path.c_str(), "rb"));
    struct stat status {};
    capture_head head;
    if (!in || fstat(fileno(in.get()), &status) != 0 ||
        std::fread(head.words.data(), sizeof head.words, 1, in.get()) != 1)
        return false;
    if (head.words[0] == magic_pcapng)
        return !walk_blocks(in.get(), status.st_size, [](const capture_head&) { return true; });
    if (!head.classic())
        return false;
    for (off_t at = sizeof head.words; at < status.st_size;) {
        capture_head record = head;
        if (std::fread(record.words.data(), 16, 1, in.get()) != 1 || record.word(2) > longest_record)
            return true;
        at += 16 + static_cast<off_t>(record.word(2));
        if (at > status.st_size || fseeko(in.get(), at, SEEK_SET) != 0)
            return true;
    }
    return false;
}

} // namespace weftio::dpdk
