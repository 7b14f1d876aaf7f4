// Both ways, by the same tests.
#include "storage/way.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "scratch_file.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

using test::pattern;
using test::scratch_file;
using namespace std::chrono_literals;

class Ways : public testing::TestWithParam<file_way> {
 protected:
    static std::unique_ptr<way> make(unsigned depth)
    {
        return GetParam() == file_way::uring ? make_uring(depth) : make_posix(depth, 3);
    }
    void SetUp() override
    try {
        (void)make(1);
    } catch (const error& refused) {
        GTEST_SKIP() << refused.what();
    }
    /// Reaps all results, by tag.
    static std::vector<std::int64_t> all(way& way, std::size_t count)
    {
        std::vector<std::int64_t> results(count, -1);
        while (way.in_flight() != 0) {
            way.wait(1s);
            std::array<io_done, 3> done;
            for (const io_done& each : std::span(done).first(way.reap(done)))
                results.at(each.tag) = each.result;
        }
        return results;
    }
};

TEST_P(Ways, ExecutesAsManyAsItsDepthAndRefusesMore)
{
    const scratch_file scratch;
    const auto bytes = pattern(8 * 4096, 3);
    const auto way = make(8);
    EXPECT_EQ(way->name(), GetParam());
    auto to = bytes;
    for (std::uint64_t i = 0; i < 8; ++i)
        EXPECT_TRUE(way->submit({io::kind::write, scratch.descriptor(), i * 4096, to.data() + i * 4096, 4096, i}));
    EXPECT_FALSE(way->submit({io::kind::write, scratch.descriptor(), 0, to.data(), 1, 9}));
    EXPECT_EQ(all(*way, 8), std::vector<std::int64_t>(8, 4096));
    std::vector<std::byte> read(bytes.size());
    for (std::uint64_t i = 0; i < 8; ++i)
        EXPECT_TRUE(way->submit({io::kind::read, scratch.descriptor(), i * 4096, read.data() + i * 4096, 4096, i}));
    EXPECT_EQ(all(*way, 8), std::vector<std::int64_t>(8, 4096));
    EXPECT_EQ(read, bytes);
}

TEST_P(Ways, TellsAnErrnoAndTheEndOfTheFile)
{
    const scratch_file scratch;
    std::array<std::byte, 16> bytes{};
    const auto way = make(4);
    EXPECT_TRUE(way->submit({io::kind::read, -1, 0, bytes.data(), 16, 0}));
    EXPECT_TRUE(way->submit({io::kind::read, scratch.descriptor(), 0, bytes.data(), 16, 1}));
    EXPECT_TRUE(way->submit({.what = io::kind::sync, .fd = scratch.descriptor(), .tag = 2}));
    EXPECT_TRUE(way->submit({.what = io::kind::data_sync, .fd = scratch.descriptor(), .tag = 3}));
    EXPECT_EQ(all(*way, 4), (std::vector<std::int64_t>{-EBADF, 0, 0, 0}));
}

TEST_P(Ways, EndsWhileIosAreInFlight)
{
    const scratch_file scratch;
    std::vector<std::byte> bytes(1 << 20);
    const auto way = make(16);
    for (std::uint64_t i = 0; i < 16; ++i)
        EXPECT_TRUE(
            way->submit({io::kind::write, scratch.descriptor(), i << 16, bytes.data() + (i << 16), 1 << 16, i}));
}

TEST_P(Ways, WaitReturnsAtItsTimeout)
{
    const auto way = make(1);
    way->wait(1ms);
    EXPECT_EQ(way->in_flight(), 0U);
}

std::string name_of(const testing::TestParamInfo<file_way>& way)
{
    return to_string(way.param);
}
INSTANTIATE_TEST_SUITE_P(Each, Ways, testing::Values(file_way::uring, file_way::posix), name_of);

} // namespace

} // namespace weftio::storage
