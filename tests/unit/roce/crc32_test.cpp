// Every way to compute the CRC-32, beside zlib's.
#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "fuzz/guarded.hpp"
#include "net/crc32.hpp"

namespace {

using namespace weftio::net;
using bytes = std::vector<std::uint8_t>;

constexpr std::size_t longest = 300, alignments = 64;

bytes random_bytes(std::size_t count)
{
    std::mt19937 random(4711);
    bytes data(count);
    std::generate(data.begin(), data.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return data;
}

std::uint32_t by_zlib(const std::uint8_t* from, std::size_t count)
{
    return static_cast<std::uint32_t>(crc32(0, from, static_cast<uInt>(count)));
}

class Crc32 : public testing::TestWithParam<crc32_method> {
 protected:
    static std::uint32_t sum(const std::uint8_t* from, std::size_t count)
    {
        return ~GetParam().update(crc32_start, from, count);
    }
};

TEST_P(Crc32, IsTheCheckValueOfTheStandard)
{
    const std::string_view digits = "123456789";
    bytes data(digits.begin(), digits.end());
    EXPECT_EQ(sum(data.data(), data.size()), 0xcbf43926);
}

TEST_P(Crc32, IsThatOfZlibAtEveryLengthAndAlignment)
{
    const bytes data = random_bytes(longest + alignments);
    for (std::size_t at = 0; at < alignments; ++at) {
        for (std::size_t count = 0; count <= longest; ++count)
            ASSERT_EQ(sum(&data[at], count), by_zlib(&data[at], count)) << count << " bytes at " << at;
    }
}

TEST_P(Crc32, IsThatOfZlibForLongData)
{
    const bytes data = random_bytes(70'000);
    for (std::size_t count : {1023u, 1024u, 4095u, 4096u, 4097u, 9000u, 65'536u, 70'000u})
        ASSERT_EQ(sum(data.data(), count), by_zlib(data.data(), count)) << count;
}

TEST_P(Crc32, OfTwoPiecesIsThatOfTheWhole)
{
    const bytes data = random_bytes(longest);
    const std::uint32_t whole = by_zlib(data.data(), longest);
    for (std::size_t first = 0; first <= longest; ++first) {
        const std::uint32_t raw = GetParam().update(crc32_start, data.data(), first);
        ASSERT_EQ(~GetParam().update(raw, data.data() + first, longest - first), whole) << first;
    }
}

TEST_P(Crc32, CopiesAllBytesAndNoMore)
{
    const bytes data = random_bytes(longest + alignments);
    for (std::size_t at : {0u, 1u, 13u, 63u}) {
        for (std::size_t count = 0; count <= longest; ++count) {
            bytes to(longest + alignments + 2, 0xa5);
            const std::uint32_t raw = GetParam().copy(crc32_start, &to[at + 1], &data[at], count);
            ASSERT_EQ(~raw, by_zlib(&data[at], count)) << count << " bytes at " << at;
            ASSERT_EQ(std::memcmp(&to[at + 1], &data[at], count), 0) << count;
            ASSERT_EQ(to[at], 0xa5);
            ASSERT_EQ(to[at + 1 + count], 0xa5) << count;
        }
    }
}

/// Source and destination end, then begin, at a page that nobody may touch.
TEST_P(Crc32, TouchesNothingBesideTheBytes)
{
    using weftio::fuzz::guarded;
    guarded from(guarded::page), to(guarded::page);
    const auto* source = reinterpret_cast<const std::uint8_t*>(from.nic());
    auto* destination = reinterpret_cast<std::uint8_t*>(to.kernel());
    const bytes data = random_bytes(guarded::page);
    std::memcpy(from.kernel(), data.data(), data.size());
    for (std::size_t count = 0; count <= longest; ++count) {
        const std::size_t last = guarded::page - count;
        ASSERT_EQ(sum(source + last, count), by_zlib(source + last, count));
        ASSERT_EQ(sum(source, count), by_zlib(source, count));
        ASSERT_EQ(~GetParam().copy(crc32_start, destination + last, source + last, count),
                  by_zlib(source + last, count));
        ASSERT_EQ(~GetParam().copy(crc32_start, destination, source, count), by_zlib(source, count));
    }
}

INSTANTIATE_TEST_SUITE_P(By, Crc32, testing::ValuesIn(crc32_methods().begin(), crc32_methods().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Crc32Choice, IsTheFirstMethodThatTheProcessorHas)
{
    const bytes data = random_bytes(longest);
    bytes to(longest);
    EXPECT_STREQ(crc32_methods().back().name, "portable");
    EXPECT_EQ(~crc32_update(crc32_start, data), by_zlib(data.data(), longest));
    EXPECT_EQ(~copy_and_sum(crc32_start, to.data(), data), by_zlib(data.data(), longest));
    EXPECT_EQ(to, data);
}

TEST(Crc32Choice, KnowsWhatThisProcessorCanDo)
{
#if defined(__x86_64__)
    const bool pclmul = __builtin_cpu_supports("pclmul") != 0,
               wide = __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("avx512bw") != 0;
    EXPECT_EQ(crc32_methods().size(), 1u + pclmul + wide);
#else
    EXPECT_EQ(crc32_methods().size(), 1u);
#endif
}

} // namespace
