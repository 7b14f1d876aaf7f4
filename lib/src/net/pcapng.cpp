#include "net/pcapng.hpp"

#include <cstring>

namespace weftio::net {

namespace {

constexpr std::uint32_t enhanced_packet = 6;
constexpr std::uint32_t byte_order_magic = 0x1a2b3c4d, version_1_0 = 1, ethernet = 1;
constexpr std::uint16_t end_of_options = 0, comment_option = 1, application = 4, interface_name = 2,
                        time_resolution = 9, packet_flags = 2;
constexpr std::uint8_t nanoseconds = 9; // 10^-9 s

template <class Number>
std::span<const std::uint8_t> bytes_of(const Number& value) noexcept
{
    return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}

} // namespace

pcapng_builder::pcapng_builder(std::string_view name, std::string_view comment, std::uint32_t snap)
{
    section(comment);
    interface(name, snap);
}

void pcapng_builder::section(std::string_view comment)
{
    const std::size_t at = begin_block(section_header);
    number(byte_order_magic);
    bytes(bytes_of(std::uint16_t{version_1_0}));
    bytes(bytes_of(std::uint16_t{0}));
    bytes(bytes_of(std::uint64_t(-1))); // the length of the section is not told
    text_option(application, "weftio");
    if (!comment.empty())
        text_option(comment_option, comment);
    option(end_of_options, {});
    end_block(at);
}

void pcapng_builder::interface(std::string_view name, std::uint32_t snap)
{
    const std::size_t at = begin_block(interface_description);
    number(ethernet);
    number(snap);
    text_option(interface_name, name);
    option(time_resolution, bytes_of(nanoseconds));
    option(end_of_options, {});
    end_block(at);
}

void pcapng_builder::add(std::span<const std::uint8_t> start, std::uint32_t whole_bytes, std::uint64_t time_ns,
                         frame_direction direction, std::uint32_t interface)
{
    const std::size_t at = begin_block(enhanced_packet);
    number(interface);
    number(static_cast<std::uint32_t>(time_ns >> 32));
    number(static_cast<std::uint32_t>(time_ns));
    number(static_cast<std::uint32_t>(start.size()));
    number(whole_bytes);
    bytes(start);
    pad();
    option(packet_flags, bytes_of(std::uint32_t{static_cast<std::uint8_t>(direction)}));
    option(end_of_options, {});
    end_block(at);
}

void pcapng_builder::number(std::uint32_t value)
{
    bytes(bytes_of(value));
}

void pcapng_builder::bytes(std::span<const std::uint8_t> from)
{
    file_.insert(file_.end(), from.begin(), from.end());
}

/// Zeros, up to a multiple of four bytes.
void pcapng_builder::pad()
{
    file_.resize((file_.size() + 3) / 4 * 4);
}

void pcapng_builder::option(std::uint16_t code, std::span<const std::uint8_t> value)
{
    bytes(bytes_of(code));
    bytes(bytes_of(static_cast<std::uint16_t>(value.size())));
    bytes(value);
    pad();
}

void pcapng_builder::text_option(std::uint16_t code, std::string_view value)
{
    const std::string_view fits = value.substr(0, UINT16_MAX);
    option(code, {reinterpret_cast<const std::uint8_t*>(fits.data()), fits.size()});
}

/// Its length comes in end_block().
std::size_t pcapng_builder::begin_block(std::uint32_t type)
{
    const std::size_t at = file_.size();
    number(type);
    number(0);
    return at;
}

void pcapng_builder::end_block(std::size_t at)
{
    const auto length = static_cast<std::uint32_t>(file_.size() - at + sizeof(std::uint32_t));
    number(length);
    std::memcpy(&file_[at + sizeof(std::uint32_t)], &length, sizeof length);
}

} // namespace weftio::net
