// A kernel on OpenCL owns a receive queue whose NIC is this test.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "fake_nic.hpp"
#include "opencl_fixture.hpp"
#include "receive_kernels.h"

namespace weftio::test {

std::string_view receive_kernels(); // receive_kernels.cpp

namespace {

struct receive_case {
    const char* kernel;
    std::uint32_t lanes;
    std::uint32_t max_packets;
    std::uint64_t timeout_ns; ///< bounds each call, so that the last few packets are handed out too
};

/// Name of the case in GoogleTest's list.
std::string name_of(const testing::TestParamInfo<receive_case>& info)
{
    const auto& [kernel, lanes, max_packets, timeout_ns] = info.param;
    return std::string(kernel) + "_lanes" + std::to_string(lanes) + "_max" + std::to_string(max_packets);
}

class OpenclReceive : public opencl_fixture, public testing::WithParamInterface<receive_case> {};

TEST_P(OpenclReceive, TakesEveryPacketOnceAndInOrderOverManyWrapsOfTheRing)
{
    constexpr std::uint32_t depth = 64, packets = 100 * depth + 17;
    const auto& [kernel, lanes, max_packets, timeout_ns] = GetParam();
    auto ring = std::make_shared<array<std::byte>>(device_, fake_nic::bytes_for(depth));
    fake_nic nic({ring, ring->data()}, device_->clock(), depth);
    auto seen = allocate<tally>(1);

    auto running = launch(receive_kernels(), kernel, {1, lanes}, nic.handle(), max_packets, timeout_ns, seen.data());
    EXPECT_TRUE(nic.publish(packets));
    EXPECT_TRUE(nic.drained());
    nic.stop();
    ASSERT_TRUE(running->wait_for(patience));

    EXPECT_EQ(seen[0].packets, packets);
    EXPECT_EQ(seen[0].wrong, 0u);
    EXPECT_EQ(seen[0].refused, 0u);
    EXPECT_EQ(seen[0].last_status, WEFTIO_DEV_ABORTED);
    EXPECT_EQ(nic.handle()->received, packets);
    EXPECT_EQ(nic.free_slots(), depth);
}

INSTANTIATE_TEST_SUITE_P(
    EveryScope, OpenclReceive,
    testing::Values(receive_case{"receive_by_thread", 1, 1, 1000000}, receive_case{"receive_by_thread", 1, 0, 50000},
                    receive_case{"receive_by_thread", 32, 8, 50000}, receive_case{"receive_by_thread", 256, 8, 50000},
                    receive_case{"receive_by_lane_0", 1, 8, 50000}, receive_case{"receive_by_lane_0", 2, 8, 50000},
                    receive_case{"receive_by_lane_0", 32, 8, 50000}, receive_case{"receive_by_lane_0", 256, 0, 50000},
                    receive_case{"receive_by_warp", 1, 0, 50000}, receive_case{"receive_by_warp", 32, 16, 50000},
                    receive_case{"receive_by_warp", 256, 16, 50000}, receive_case{"receive_by_block", 1, 0, 50000},
                    receive_case{"receive_by_block", 1, 32, 50000}, receive_case{"receive_by_block", 2, 0, 50000},
                    receive_case{"receive_by_block", 3, 8, 50000}, receive_case{"receive_by_block", 32, 0, 50000},
                    receive_case{"receive_by_block", 32, 33, 50000}, receive_case{"receive_by_block", 256, 0, 50000},
                    receive_case{"receive_by_block", 256, 7, 50000}),
    name_of);

} // namespace
} // namespace weftio::test
