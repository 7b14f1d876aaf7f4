#include "bench/pattern.hpp"

#include <algorithm>
#include <cstring>

namespace weftio::files {

namespace {

/// Word `index` of every such file (the finalizer of splitmix64).
std::uint64_t word_at(std::uint64_t index) noexcept
{
    std::uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

/// Calls `use(position, bytes of the pattern)` for each part of a word in `bytes` bytes from `offset` on.
template <class Use>
void for_each_word(std::size_t bytes, std::uint64_t offset, Use&& use)
{
    for (std::size_t at = 0; at < bytes;) {
        const std::uint64_t word = word_at((offset + at) / sizeof word);
        const std::size_t skip = (offset + at) % sizeof word;
        const std::size_t count = std::min(sizeof word - skip, bytes - at);
        if (!use(at, reinterpret_cast<const std::byte*>(&word) + skip, count))
            return;
        at += count;
    }
}

} // namespace

void fill_pattern(std::span<std::byte> to, std::uint64_t offset) noexcept
{
    for_each_word(to.size(), offset, [&](std::size_t at, const std::byte* word, std::size_t count) {
        std::memcpy(to.data() + at, word, count);
        return true;
    });
}

std::optional<std::size_t> first_wrong(std::span<const std::byte> seen, std::uint64_t offset) noexcept
{
    std::optional<std::size_t> wrong;
    for_each_word(seen.size(), offset, [&](std::size_t at, const std::byte* word, std::size_t count) {
        const auto differs = std::mismatch(word, word + count, seen.data() + at);
        if (differs.first != word + count)
            wrong = at + static_cast<std::size_t>(differs.first - word);
        return !wrong;
    });
    return wrong;
}

} // namespace weftio::files
