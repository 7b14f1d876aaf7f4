#include "address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace weftio::packets {

namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why)
{
    throw std::invalid_argument(fmt::format("--address {}: {}; write it as 10.9.0.1/24 or fd00::1/64", text, why));
}

/// Why no host can have the address; empty if one can.
std::string_view why_nobodys(const address& found)
{
    const auto& bytes = found.bytes;
    if (found.version == 4) {
        if (bytes[0] == 0 || bytes[0] == 127 || bytes[0] >= 224)
            return "no host on a network can have it";
        const std::uint32_t word =
            std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
        const std::uint32_t host = found.prefix == 0 ? ~0u : found.prefix >= 31 ? 1u : ~0u >> found.prefix;
        if (found.prefix < 31 && ((word & host) == 0 || (word & host) == host))
            return "names the network or its broadcast address, not a host";
        return "";
    }
    std::array<std::uint8_t, 16> loopback{};
    loopback[15] = 1;
    if (bytes[0] == 0xff || bytes == std::array<std::uint8_t, 16>{} || bytes == loopback)
        return "no host on a network can have it";
    return "";
}

unsigned parse_prefix(std::string_view text, std::string_view digits, unsigned most)
{
    unsigned prefix = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (error != std::errc{} || end != digits.data() + digits.size() || prefix < 1 || prefix > most)
        refuse(text, fmt::format("\"{}\" is not a prefix length from 1 to {}", digits, most));
    return prefix;
}

} // namespace

address parse_address(std::string_view text)
{
    const std::size_t slash = text.find('/');
    const std::string host(text.substr(0, slash));
    address found;
    if (::inet_pton(AF_INET, host.c_str(), found.bytes.data()) == 1)
        found.version = 4;
    else if (::inet_pton(AF_INET6, host.c_str(), found.bytes.data()) == 1)
        found.version = 6;
    else
        refuse(text, "not an address");
    const unsigned bits = found.version == 4 ? 32 : 128;
    found.prefix =
        slash == text.npos ? (found.version == 4 ? 24 : 64) : parse_prefix(text, text.substr(slash + 1), bits);
    if (const std::string_view why = why_nobodys(found); !why.empty())
        refuse(text, why);
    return found;
}

address link_local(const std::array<std::uint8_t, 6>& mac) noexcept
{
    address made{.version = 6, .bytes = {0xfe, 0x80}, .prefix = 64};
    const std::uint8_t identifier[] = {
        static_cast<std::uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    std::copy(std::begin(identifier), std::end(identifier), made.bytes.begin() + 8);
    return made;
}

address neighbor_of(const address& own) noexcept
{
    address other = own;
    std::uint8_t& last = other.bytes[own.version == 4 ? 3 : 15];
    last = static_cast<std::uint8_t>(last < 254 ? last + 1 : last - 1);
    return other;
}

bool has_in_network(const address& own, const address& other) noexcept
{
    if (own.version != other.version)
        return false;
    for (unsigned bit = 0; bit < own.prefix; ++bit)
        if ((own.bytes[bit / 8] ^ other.bytes[bit / 8]) & (0x80u >> bit % 8))
            return false;
    return true;
}

std::string to_string(const address& address)
{
    char text[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(address.version == 4 ? AF_INET : AF_INET6, address.bytes.data(), text, sizeof text);
    return text;
}

std::string with_prefix(const address& address)
{
    return fmt::format("{}/{}", to_string(address), address.prefix);
}

std::string in_url(const address& address)
{
    return address.version == 4 ? to_string(address) : fmt::format("[{}]", to_string(address));
}

} // namespace weftio::packets
