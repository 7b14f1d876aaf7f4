#include "devices/cpu/lane_order.hpp"

#include <charconv>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::devices::cpu {

namespace {

[[maybe_unused]] std::uint64_t parse_seed(std::string_view text)
{
    std::uint64_t seed = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (failure != std::errc{} || end != text.data() + text.size())
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: WEFTIO_SHUFFLE_SEED={}: not a decimal number below 2^64; unset it for a random seed",
                        text));
    return seed;
}

/// Spreads neighboring seeds and blocks over all 64 bits (the finalizer of splitmix64).
std::uint64_t mix(std::uint64_t value) noexcept
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

} // namespace

std::optional<std::uint64_t> shuffle_seed()
{
#if defined(WEFTIO_SHUFFLE_LANES)
    if (const char* text = std::getenv("WEFTIO_SHUFFLE_SEED"))
        return parse_seed(text);
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
#else
    return std::nullopt;
#endif
}

lane_order::lane_order(std::optional<std::uint64_t> seed, std::uint32_t block) noexcept
{
    if (seed)
        state_ = mix(mix(*seed) + block) | 1;
}

std::uint64_t lane_order::next() noexcept
{
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
}

void lane_order::arrange(std::span<std::uint32_t> lanes) noexcept
{
    if (state_ == 0)
        return;
    for (std::size_t left = lanes.size(); left > 1; --left)
        std::swap(lanes[left - 1], lanes[next() % left]);
}

} // namespace weftio::devices::cpu
