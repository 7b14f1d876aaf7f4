#include "report/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>

namespace weftio::replay {

namespace {

/// Formats three digits and a prefix: 1.23 M, 12.3 k, 123.
std::string scaled(double value, const char* unit)
{
    constexpr std::array prefixes{"", "k", "M", "G", "T"};
    std::size_t prefix = 0;
    for (; value >= 999.5 && prefix + 1 < prefixes.size(); ++prefix)
        value /= 1000;
    int digits = value >= 99.95 || (prefix == 0 && value == std::floor(value)) ? 0 : value >= 9.995 ? 1 : 2;
    return fmt::format("{:.{}f} {}{}", value, digits, prefixes[prefix], unit);
}

/// Formats a long time in two units: "2 h 5 min".
std::string long_duration_text(std::uint64_t seconds)
{
    struct unit {
        const char* name;
        std::uint64_t seconds;
    };
    constexpr std::array<unit, 5> units{{{"y", 31'536'000}, {"d", 86'400}, {"h", 3'600}, {"min", 60}, {"s", 1}}};
    std::size_t at = 0;
    while (seconds < 2 * units[at].seconds && units[at].seconds > 60)
        ++at;
    std::uint64_t rest = seconds % units[at].seconds / units[at + 1].seconds;
    std::string text = fmt::format("{} {}", seconds / units[at].seconds, units[at].name);
    return rest == 0 ? text : text + fmt::format(" {} {}", rest, units[at + 1].name);
}

} // namespace

std::string grouped(std::uint64_t number)
{
    std::string digits = fmt::format("{}", number);
    std::string text;
    for (std::size_t at = 0; at < digits.size(); ++at) {
        if (at != 0 && (digits.size() - at) % 3 == 0)
            text += ',';
        text += digits[at];
    }
    return text;
}

std::string frames_text(std::uint64_t number)
{
    return grouped(number) + (number == 1 ? " frame" : " frames");
}

/// The thresholds are where rounding would show 1000 of a unit.
std::string duration_text(std::uint64_t ns)
{
    auto of = [ns](std::uint64_t unit_ns, int digits, const char* name) {
        bool whole = ns % unit_ns == 0;
        return fmt::format("{:.{}f} {}", static_cast<double>(ns) / static_cast<double>(unit_ns), whole ? 0 : digits,
                           name);
    };
    if (ns < 1000)
        return fmt::format("{} ns", ns);
    if (ns < 999'950)
        return of(1000, 1, "us");
    if (ns < 999'950'000)
        return of(1'000'000, 1, "ms");
    if (ns < 120 * second_ns)
        return of(second_ns, 3, "s");
    return long_duration_text(ns / second_ns);
}

std::string signed_duration_text(std::int64_t ns)
{
    std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
    return (ns < 0 ? "-" : ns > 0 ? "+" : "") + duration_text(size);
}

std::string frame_rate_text(double per_second)
{
    return scaled(per_second, "pps");
}

std::string bit_rate_text(double per_second)
{
    return scaled(per_second, "bit/s");
}

std::string bytes_text(std::uint64_t bytes)
{
    return bytes < 1000 ? fmt::format("{} bytes", bytes) : scaled(static_cast<double>(bytes), "B");
}

std::string utc_text(std::int64_t utc_ns)
{
    constexpr std::int64_t second = second_ns;
    std::int64_t rest_ns = (utc_ns % second + second) % second;
    std::time_t seconds = utc_ns / second - (utc_ns % second < 0 ? 1 : 0);
    std::tm date{};
    ::gmtime_r(&seconds, &date);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
                       date.tm_hour, date.tm_min, date.tm_sec, rest_ns);
}

} // namespace weftio::replay
