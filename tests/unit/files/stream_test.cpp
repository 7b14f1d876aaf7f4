// Operations in the order of the null stream, on a machine without a GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "scratch_file.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio::test {

namespace {

class Stream : public testing::Test {
 protected:
    const scratch_file scratch;
    const file_engine engine;
    const weftio::file file{engine, scratch.descriptor()};
    std::vector<std::byte> bytes = pattern(10'000, 8), read = std::vector<std::byte>(10'000);
    std::size_t size = 10'000;
    std::int64_t none = 0, result = -1;
};

TEST_F(Stream, ArgumentsAreReadWhenTheOperationIsExecuted)
{
    size = 6000;
    std::int64_t written = 0; // by the first, for the second
    std::size_t& second_size = reinterpret_cast<std::size_t&>(written);
    const std::int64_t place = 17;
    file.write_on(nullptr, file_memory(bytes.data()), {&size, &none, &none, &written});
    file.read_on(nullptr, file_memory(read.data()), {&second_size, &none, &place, &result});
    engine.drain();
    EXPECT_EQ(written, 6000);
    EXPECT_EQ(result, 6000);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 6000, read.begin() + 17));
    EXPECT_EQ(read[16], std::byte{0});
}

TEST_F(Stream, OperationsHaveTheOrderInWhichTheyWereEnqueued)
{
    std::vector<std::int64_t> results(500, -1);
    std::size_t one = 1;
    for (std::size_t i = 0; i < results.size(); ++i)
        file.write_on(nullptr, file_memory(bytes.data() + i), {&one, &none, &none, &results[i]});
    file.read_on(nullptr, file_memory(read.data()), {&one, &none, &none, &result});
    engine.drain();
    EXPECT_EQ(results, std::vector<std::int64_t>(500, 1));
    EXPECT_EQ(read[0], bytes[499]);
}

TEST_F(Stream, ErrorsAreNegativeErrnos)
{
    const std::int64_t negative = -1;
    std::int64_t results[3];
    file.read_on(nullptr, file_memory(read.data()), {&size, &negative, &none, &results[0]});
    file.read_on(nullptr, file_memory(read.data()), {&size, &none, &negative, &results[1]});
    (void)file.write(bytes.data(), 100, 0);
    file.read_on(nullptr, file_memory(nullptr), {&size, &none, &none, &results[2]});
    engine.drain();
    EXPECT_EQ(results[0], -EINVAL);
    EXPECT_EQ(results[1], -EINVAL);
    EXPECT_EQ(results[2], -EFAULT);
}

TEST_F(Stream, FileAndEngineMayEndBeforeTheOperation)
{
    std::int64_t written = 0;
    std::weak_ptr<storage::context> lives;
    {
        const file_engine brief_engine;
        lives = detail::internals::share(brief_engine);
        const weftio::file brief(brief_engine, scratch.descriptor());
        for (int i = 0; i < 50; ++i)
            brief.write_on(nullptr, file_memory(bytes.data()), {&size, &none, &none, &written});
    }
    while (!lives.expired()) // it ends on its own thread
        usleep(100);
    EXPECT_EQ(lseek(scratch.descriptor(), 0, SEEK_END), 10'000);
}

TEST_F(Stream, RefusesNullPointersAndStreamsWithoutADriver)
{
    EXPECT_THROW(file.read_on(nullptr, file_memory(read.data()), {nullptr, &none, &none, &result}), error);
    EXPECT_THROW(file.read_on(nullptr, file_memory(read.data()), {&size, &none, &none, nullptr}), error);
    EXPECT_THROW(file.read_on(&result, file_memory(read.data()), {&size, &none, &none, &result}), error);
}

} // namespace

} // namespace weftio::test
