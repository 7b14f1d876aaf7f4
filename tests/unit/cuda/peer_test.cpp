// Semaphores of two GPUs: each gets access to the other's memory, or one sentence says why not. A stand-in is the
// driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stand_in.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

namespace {

class TwoGpus : public testing::Test {
 protected:
    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        first.emplace(device::open("cuda:0"));
        second.emplace(device::open("cuda:1"));
    }
    void TearDown() override
    {
        if (driver().opened)
            driver().peers(true);
    }
    semaphore make(memory_kind kind, memory_kind custom_info_kind = memory_kind::cpu_device) const
    {
        return semaphore(
            *first,
            {.items = 8, .kind = kind, .custom_info_bytes = 64, .custom_info_kind = custom_info_kind, .peer = *second});
    }

    std::optional<device> first, second;
};

} // namespace

TEST_F(TwoGpus, GetAccessToEachOtherOnce)
{
    const int before = driver().peers(true);
    const semaphore one = make(memory_kind::device), other = make(memory_kind::device);
    EXPECT_EQ(driver().peers(true) - before, 2) << "both ways, at the first";
}

TEST_F(TwoGpus, AreRefusedThatAreNoPeersUnlessThePinnedMemoryIsUsed)
{
    driver().peers(false);
    for (const auto& [items, custom_info] : {std::pair{memory_kind::device, memory_kind::cpu_device},
                                             std::pair{memory_kind::cpu_device, memory_kind::device}}) {
        try {
            make(items, custom_info);
            ADD_FAILURE() << "made";
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), errc::not_reachable);
            EXPECT_THAT(refused.what(), testing::AllOf(testing::StartsWith("weftio: semaphore: kernels of cuda:"),
                                                       testing::HasSubstr("are no peers"),
                                                       testing::HasSubstr("use memory_kind::cpu_device")));
        }
    }
    semaphore items = make(memory_kind::cpu_device);
    items.peer().set_status(3, semaphore_status::hold);
    EXPECT_EQ(items.get_status(3), semaphore_status::hold);
}

} // namespace weftio::test
