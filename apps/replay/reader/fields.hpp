// Reads fields of either byte order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weftio::replay {

/// For `fields`: network byte order, and that of 802.11.
inline constexpr bool big_endian = std::endian::native == std::endian::little, little_endian = !big_endian;

/// Reads numbers out of bytes. @pre the bytes read lie inside
class fields {
 public:
    fields(std::span<const std::byte> bytes, bool swapped) noexcept : bytes_(bytes), swapped_(swapped) {}

    std::uint16_t u16(std::size_t at) const noexcept
    {
        return swapped_ ? __builtin_bswap16(raw<std::uint16_t>(at)) : raw<std::uint16_t>(at);
    }
    std::uint32_t u32(std::size_t at) const noexcept
    {
        return swapped_ ? __builtin_bswap32(raw<std::uint32_t>(at)) : raw<std::uint32_t>(at);
    }
    std::uint64_t u64(std::size_t at) const noexcept
    {
        return swapped_ ? __builtin_bswap64(raw<std::uint64_t>(at)) : raw<std::uint64_t>(at);
    }
    std::uint8_t u8(std::size_t at) const noexcept { return raw<std::uint8_t>(at); }
    std::size_t size() const noexcept { return bytes_.size(); }

 private:
    template <class T>
    T raw(std::size_t at) const noexcept
    {
        T value;
        std::memcpy(&value, bytes_.data() + at, sizeof value);
        return value;
    }

    std::span<const std::byte> bytes_;
    bool swapped_;
};

} // namespace weftio::replay
