// Parses numbers, durations and times as people write them.
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include "options.hpp"

namespace weftio::replay {

namespace {

/// Parses an unsigned number at the start of `text`, and removes it.
std::optional<std::uint64_t> take_number(std::string_view& text)
{
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{})
        return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

/// Parses ".25" to nanoseconds; digits behind the ninth are dropped.
std::uint64_t take_fraction(std::string_view& text)
{
    std::uint64_t ns = 0, digit_ns = 100'000'000;
    if (text.empty() || text[0] != '.')
        return 0;
    for (text.remove_prefix(1); !text.empty() && text[0] >= '0' && text[0] <= '9';
         text.remove_prefix(1), digit_ns /= 10)
        ns += digit_ns * static_cast<std::uint64_t>(text[0] - '0');
    return ns;
}

std::optional<std::uint64_t> parse_seconds(std::string_view text)
{
    constexpr std::uint64_t most_s = 9'000'000'000;
    auto seconds = take_number(text);
    std::uint64_t fraction_ns = take_fraction(text);
    if (!seconds || *seconds > most_s || !text.empty())
        return std::nullopt;
    return *seconds * 1'000'000'000 + fraction_ns;
}

/// Refuses days that a month does not have: strptime() accepts the 31st of every month, and timegm() carries it into
/// the next.
bool has_that_day(std::tm date)
{
    const int day = date.tm_mday;
    date.tm_hour = date.tm_min = date.tm_sec = 0; // excludes the time, since a leap second would move the day
    ::timegm(&date);
    return date.tm_mday == day;
}

std::optional<std::uint64_t> parse_date(std::string_view text)
{
    std::tm date{};
    std::string copy(text);
    const char* end = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &date);
    if (!end || !has_that_day(date))
        return std::nullopt;
    std::string_view rest(end);
    std::uint64_t fraction_ns = take_fraction(rest);
    std::time_t seconds = ::timegm(&date);
    if ((!rest.empty() && rest != "Z") || seconds < 0)
        return std::nullopt;
    return static_cast<std::uint64_t>(seconds) * 1'000'000'000 + fraction_ns;
}

} // namespace

std::optional<std::uint64_t> parse_duration(std::string_view text)
{
    struct unit {
        std::string_view name;
        double ns;
    };
    constexpr std::array<unit, 5> units{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1e9}}};
    double value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
    for (const unit& each : units)
        if (error == std::errc{} && rest == each.name && value >= 0 && value * each.ns < 9e18)
            return static_cast<std::uint64_t>(std::llround(value * each.ns));
    return std::nullopt;
}

std::optional<std::uint64_t> parse_time(std::string_view text, std::uint64_t now_ns)
{
    if (!text.empty() && text[0] == '+') {
        auto delay_ns = parse_seconds(text.substr(1));
        return delay_ns ? std::optional(now_ns + *delay_ns) : std::nullopt;
    }
    return text.find('T') != std::string_view::npos ? parse_date(text) : parse_seconds(text);
}

std::optional<std::uint16_t> parse_vlan(std::string_view text)
{
    auto identifier = take_number(text);
    std::optional<std::uint64_t> priority = 0;
    if (!text.empty() && text[0] == ':') {
        text.remove_prefix(1);
        priority = take_number(text);
    }
    if (!identifier || *identifier > 4095 || !priority || *priority > 7 || !text.empty())
        return std::nullopt;
    return static_cast<std::uint16_t>(*priority << 13 | *identifier);
}

} // namespace weftio::replay
