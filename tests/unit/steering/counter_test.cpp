#include "core/counter.hpp"

#include <thread>

#include <gtest/gtest.h>

namespace {

TEST(Counter, IsReadWholeAndNeverBackwardsWhileItsWriterAdds)
{
    constexpr std::uint64_t step = 0x1'0000'0001; // a torn value has two unequal halves
    constexpr std::uint64_t additions = 200000;
    weftio::core::counter counter;
    std::thread writer([&] {
        for (std::uint64_t i = 0; i < additions; ++i)
            counter.add(step);
    });
    std::uint64_t last = 0;
    while (last < additions * step) {
        const std::uint64_t value = counter.value();
        ASSERT_EQ(value >> 32, value & 0xffffffff);
        ASSERT_GE(value, last);
        last = value;
        std::this_thread::yield();
    }
    writer.join();
    EXPECT_EQ(counter.value(), additions * step);
}

} // namespace
