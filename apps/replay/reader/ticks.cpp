#include "reader/ticks.hpp"

#include <algorithm>
#include <limits>

namespace weftio::replay {

namespace {

using wide = __int128;
constexpr wide ns_per_s = 1'000'000'000;

/// 10^power; @pre power <= 19
constexpr wide ten_to(unsigned power)
{
    wide value = 1;
    while (power-- > 0)
        value *= 10;
    return value;
}

wide decimal_ns(std::uint64_t count, unsigned power)
{
    if (power <= 9)
        return wide{count} * ten_to(9 - power);
    return power - 9 > 19 ? 0 : wide{count} / ten_to(power - 9); // above: 2^64 ticks are less than a nanosecond
}

} // namespace

std::int64_t ticks::to_ns(std::uint64_t count) const noexcept
{
    unsigned power = resolution_ & 0x7f;
    wide ns = resolution_ & 0x80 ? (wide{count} * ns_per_s) >> power : decimal_ns(count, power);
    ns += wide{offset_s_} * ns_per_s;
    return static_cast<std::int64_t>(
        std::clamp<wide>(ns, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

} // namespace weftio::replay
