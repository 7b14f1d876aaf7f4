// The numbers of a wire's loss as text: one rule for the spec of a port and for weftio-run.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace weftio::wires {

/// All of the text as a number from 0 to `most`, of the type of `most`: double for a share, an integer for a seed.
/// @return nullopt: it is none, or `Number` cannot hold it, as 1e-400. No other characters, a '+' or space neither
template <class Number>
std::optional<Number> number_up_to(Number most, std::string_view text) noexcept
{
    Number value{};
    const auto [behind, why] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (why != std::errc() || behind != text.data() + text.size() || !(value >= 0 && value <= most))
        return std::nullopt;
    return value;
}

} // namespace weftio::wires
