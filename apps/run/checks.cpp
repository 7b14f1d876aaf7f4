#include "checks.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>

#include "options.hpp"
#include "program.hpp"
#include "verbs/seam.hpp"
#include "wires/loss_number.hpp"

namespace weftio::run {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_wire = 64;

[[noreturn]] void refuse(const std::string& name, const std::string& value, std::string_view why)
{
    throw refusal(own_failure, fmt::format("{}{}{}: {}", name, value.empty() ? "" : " ", value, why));
}

bool is_number(const std::string& text, std::size_t most_digits)
{
    return !text.empty() && text.size() <= most_digits &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Not the unspecified address, loopback, multicast, nor what IPv4 has reserved or broadcasts to.
bool can_be_a_hosts_v4(std::uint8_t first_byte)
{
    return first_byte != 0 && first_byte != 127 && first_byte < 224;
}

bool can_be_a_hosts_v6(const in6_addr& v6)
{
    if (IN6_IS_ADDR_V4MAPPED(&v6))
        return can_be_a_hosts_v4(v6.s6_addr[12]);
    return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_MULTICAST(&v6);
}

} // namespace

void check_wire(const std::string& name, const std::string& value)
{
    const bool fits = !value.empty() && value.size() <= longest_wire && std::ranges::all_of(value, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    });
    if (!fits)
        refuse(name, value, fmt::format("write 1 to {} letters, digits, '-', '_' and '.'", longest_wire));
}

void check_port(const std::string& name, const std::string& value)
{
    if (value.empty())
        refuse(name, value, "not a port; write it as iface:eth0");
}

void check_address(const std::string& name, const std::string& value)
{
    std::array<std::uint8_t, 4> v4{};
    in6_addr v6{};
    const bool is_v4 = ::inet_pton(AF_INET, value.c_str(), v4.data()) == 1;
    if (!is_v4 && ::inet_pton(AF_INET6, value.c_str(), &v6) != 1)
        refuse(name, value, "not an address; write it as 10.0.0.1 or fd00::1");
    if (!(is_v4 ? can_be_a_hosts_v4(v4[0]) : can_be_a_hosts_v6(v6)))
        refuse(name, value, "not a unicast address of one host; write it as 10.0.0.1 or fd00::1");
}

void check_devices(const std::string& name, const std::string& value)
{
    if (!is_number(value, 2) || std::stoul(value) < 1 || std::stoul(value) > verbs::most_devices)
        refuse(name, value, fmt::format("not a number from 1 to {}", verbs::most_devices));
}

void check_loss(const std::string& name, const std::string& value)
{
    const std::string_view text = value;
    const std::size_t comma = text.find(',');
    if (!wires::number_up_to(1.0, text.substr(0, comma)))
        refuse(name, value, "not a share from 0 to 1 with an optional seed; write 0.01 or 0.01,7");
    constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
    if (comma != text.npos && !wires::number_up_to(largest, text.substr(comma + 1)))
        refuse(name, value, fmt::format("the seed is not a number from 0 to {}; write it as 0.01,7", largest));
}

void check_doorbell_bytes(const std::string& name, const std::string& value)
{
    if (value != "8" && value != "64")
        refuse(name, value, "is neither 8 nor 64");
}

void check_stale(const std::string& name, const std::string& value)
{
    if (value != "report" && value != "fail" && value != "off")
        refuse(name, value, "is none of report, fail and off");
}

void check_process(const std::string& name, const std::string& value)
{
    if (!is_number(value, 9) || value[0] == '0')
        refuse(name, value, "not a process ID");
}

void check_dump(const std::string& name, const std::string& value)
{
    std::error_code error;
    const fs::path path = fs::absolute(value, error);
    if (value.empty() || error || fs::is_directory(path, error))
        refuse(name, value, "not a file");
    if (::access(path.c_str(), W_OK) == 0)
        return;
    const bool is_new = errno == ENOENT && !fs::is_symlink(path, error); // else a link to nothing
    if (!is_new || ::access(path.parent_path().c_str(), W_OK) != 0)
        refuse(name, value, std::strerror(errno));
}

} // namespace weftio::run
