// Captures written byte by byte, in either byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reader/capture.hpp"

namespace weftio::replay::test {

/// Appends numbers and bytes.
struct bytes {
    bool big = false;
    std::string text{};

    template <class Number>
    bytes& put(Number number)
    {
        for (std::size_t i = 0; i < sizeof number; ++i) {
            std::size_t at = big ? sizeof number - 1 - i : i;
            text += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * at));
        }
        return *this;
    }
    bytes& u16(std::uint16_t number) { return put(number); }
    bytes& u32(std::uint32_t number) { return put(number); }
    bytes& u64(std::uint64_t number) { return put(number); }
    bytes& raw(std::string_view more)
    {
        text += more;
        return *this;
    }
};

/// A frame of `count` bytes with `fill` in every byte.
inline std::string frame_of(std::size_t count, char fill = 'x')
{
    return std::string(count, fill);
}

// pcap

inline constexpr std::uint32_t microseconds = 0xa1b2c3d4, nanoseconds = 0xa1b23c4d;

inline std::string pcap_header(bool big = false, std::uint32_t magic = microseconds, std::uint32_t link_type = 1,
                               std::uint16_t minor = 4)
{
    return bytes{big}.u32(magic).u16(2).u16(minor).u32(0).u32(0).u32(65535).u32(link_type).text;
}
inline std::string pcap_record(bool big, std::uint32_t seconds, std::uint32_t fraction, const std::string& frame,
                               std::uint32_t original = 0)
{
    auto count = static_cast<std::uint32_t>(frame.size());
    return bytes{big}.u32(seconds).u32(fraction).u32(count).u32(original ? original : count).raw(frame).text;
}

// pcapng

/// A pcapng block around `body`, which is padded. `length` and `trailer` replace the correct lengths if they are not 0.
inline std::string block(bool big, std::uint32_t type, std::string body, std::uint32_t length = 0,
                         std::uint32_t trailer = 0)
{
    body.resize((body.size() + 3) / 4 * 4);
    auto truth = static_cast<std::uint32_t>(body.size() + 12);
    return bytes{big}
        .u32(type)
        .u32(length ? length : truth)
        .raw(body)
        .u32(trailer  ? trailer
             : length ? length
                      : truth)
        .text;
}
inline std::string section(bool big = false, std::uint64_t length = ~0ull, std::uint16_t major = 1)
{
    return block(big, 0x0a0d0d0a, bytes{big}.u32(0x1a2b3c4d).u16(major).u16(0).u64(length).text);
}
inline std::string option(bool big, std::uint16_t code, const std::string& value)
{
    std::string padded = value;
    padded.resize((value.size() + 3) / 4 * 4);
    return bytes{big}.u16(code).u16(static_cast<std::uint16_t>(value.size())).raw(padded).text;
}
inline std::string tsresol(bool big, std::uint8_t resolution)
{
    return option(big, 9, std::string(1, static_cast<char>(resolution)));
}
inline std::string tsoffset(bool big, std::int64_t seconds)
{
    return option(big, 14, bytes{big}.u64(static_cast<std::uint64_t>(seconds)).text);
}
inline std::string interface_block(bool big = false, const std::string& options = {}, std::uint16_t link_type = 1,
                                   std::uint32_t snaplen = 0)
{
    return block(big, 1, bytes{big}.u16(link_type).u16(0).u32(snaplen).raw(options).text);
}
inline std::string packet(bool big, std::uint32_t interface, std::uint64_t ticks, const std::string& frame,
                          std::uint32_t captured = ~0u, std::uint32_t original = 0, const std::string& options = {})
{
    auto count = static_cast<std::uint32_t>(frame.size());
    std::string padded = frame;
    if (!options.empty())
        padded.resize((frame.size() + 3) / 4 * 4);
    return block(big, 6,
                 bytes{big}
                     .u32(interface)
                     .u32(static_cast<std::uint32_t>(ticks >> 32))
                     .u32(static_cast<std::uint32_t>(ticks))
                     .u32(captured == ~0u ? count : captured)
                     .u32(original ? original : count)
                     .raw(padded)
                     .raw(options)
                     .text);
}
/// The flags of a packet that say the length of its FCS.
inline std::string fcs_flags(bool big, std::uint32_t fcs_bytes)
{
    return option(big, 2, bytes{big}.u32(fcs_bytes << 5 | 1).text);
}
inline std::string fcslen(bool big, std::uint8_t fcs_bytes)
{
    return option(big, 13, std::string(1, static_cast<char>(fcs_bytes)));
}
inline std::string simple_packet(bool big, const std::string& frame, std::uint32_t original)
{
    return block(big, 3, bytes{big}.u32(original).raw(frame).text);
}
inline std::string obsolete_packet(bool big, std::uint16_t interface, std::uint64_t ticks, const std::string& frame,
                                   const std::string& options = {})
{
    auto count = static_cast<std::uint32_t>(frame.size());
    return block(big, 2,
                 bytes{big}
                     .u16(interface)
                     .u16(0xffff)
                     .u32(static_cast<std::uint32_t>(ticks >> 32))
                     .u32(static_cast<std::uint32_t>(ticks))
                     .u32(count)
                     .u32(count)
                     .raw(frame)
                     .raw(options)
                     .text);
}

// Reading them back

struct read_frame {
    std::int64_t time_ns;
    std::string bytes;
    std::uint32_t original_bytes, interface, link_type;
    bool has_time;
    std::uint32_t fcs_bytes = 0, fcs_captured = 0;
};
struct read_capture {
    std::vector<read_frame> frames;
    std::optional<damage> damaged;
    std::string format;
};

inline read_capture read_all(capture_reader& reader)
{
    read_capture all;
    frame next;
    while (reader.next(next))
        all.frames.push_back(
            {next.time_ns, std::string(reinterpret_cast<const char*>(next.bytes.data()), next.bytes.size()),
             next.original_bytes, next.interface, next.link_type, next.has_time, next.fcs_bytes, next.fcs_captured});
    all.damaged = reader.damaged();
    all.format = reader.format();
    return all;
}
inline read_capture read_all(const std::string& file)
{
    auto reader = make_reader(input(make_memory_source(file.data(), file.size())));
    return read_all(*reader);
}

} // namespace weftio::replay::test
