#include "rdma/blob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "net/crc32.hpp"
#include "weftio/error.hpp"

namespace weftio::rdma {

namespace {

constexpr std::size_t mark_bytes = 4, version_at = 4, size_at = 5, sum_bytes = 4;

std::uint32_t sum_of_blob(std::span<const std::uint8_t> blob) noexcept
{
    return ~net::crc32_update(net::crc32_start, blob.first(blob.size() - sum_bytes));
}

[[noreturn]] void refuse_blob(const blob_kind& kind, const std::string& why)
{
    throw error(errc::invalid_argument,
                fmt::format("weftio: {}: {}; pass the complete result of the peer's {}, unchanged", kind.name, why,
                            kind.source));
}

int digit_of(char letter) noexcept
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    const char lower = static_cast<char>(letter | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

} // namespace

void put_be(std::uint8_t* at, std::uint64_t value, std::size_t bytes) noexcept
{
    for (std::size_t each = bytes; each != 0; value >>= 8)
        at[--each] = static_cast<std::uint8_t>(value);
}

std::uint64_t get_be(const std::uint8_t* at, std::size_t bytes) noexcept
{
    std::uint64_t value = 0;
    for (std::size_t each = 0; each != bytes; ++each)
        value = value << 8 | at[each];
    return value;
}

void seal(const blob_kind& kind, std::span<std::uint8_t> blob) noexcept
{
    std::memcpy(blob.data(), kind.mark.data(), mark_bytes);
    blob[version_at] = blob_version;
    blob[size_at] = static_cast<std::uint8_t>(blob.size());
    put_be(&blob[blob.size() - sum_bytes], sum_of_blob(blob), sum_bytes);
}

void require_sealed(const blob_kind& kind, std::span<const std::uint8_t> blob)
{
    if (blob.size() < blob_body || std::memcmp(blob.data(), kind.mark.data(), mark_bytes) != 0)
        refuse_blob(kind,
                    fmt::format("the {} bytes are not one: they do not begin with \"{}\"", blob.size(), kind.mark));
    if (blob[version_at] != blob_version)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: it has version {}, this library knows version {}; "
                                                        "use libraries of the same version at both ends",
                                                        kind.name, blob[version_at], blob_version));
    if (blob.size() != kind.bytes || blob[size_at] != kind.bytes)
        refuse_blob(kind, fmt::format("it should have {} bytes but has {}", kind.bytes, blob.size()));
    const auto sum = static_cast<std::uint32_t>(get_be(&blob[blob.size() - sum_bytes], sum_bytes));
    if (sum != sum_of_blob(blob))
        refuse_blob(kind, fmt::format("it was changed in transit: its checksum is {:#010x}, that of its bytes {:#010x}",
                                      sum, sum_of_blob(blob)));
}

std::string to_hex(std::span<const std::uint8_t> bytes)
{
    std::string text;
    for (const std::uint8_t byte : bytes)
        text += fmt::format("{:02x}", byte);
    return text;
}

void from_hex(const blob_kind& kind, std::string_view text, std::span<std::uint8_t> to)
{
    if (text.size() != 2 * to.size())
        refuse_blob(kind, fmt::format("its text should have {} digits but has {}", 2 * to.size(), text.size()));
    for (std::size_t at = 0; at != to.size(); ++at) {
        const int high = digit_of(text[2 * at]), low = digit_of(text[2 * at + 1]);
        if (high < 0 || low < 0)
            refuse_blob(kind, fmt::format("its text has \"{}\" at {}, not a hexadecimal number", text.substr(2 * at, 2),
                                          2 * at));
        to[at] = static_cast<std::uint8_t>(high << 4 | low);
    }
}

} // namespace weftio::rdma
