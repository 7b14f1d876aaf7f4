// A kernel that nvcc compiled and the CUDA runtime launched owns a queue as ours do.
#include "user_code.hpp"

#include "fixture.hpp"

namespace weftio::test {
namespace {

using GpuUserCode = gpu_fixture;

TEST_F(GpuUserCode, ReceivesOnItsOwnStreamByTheHandle)
{
    port port = port::open("net_null_user,size=100");
    eth_rxq queue(port, gpu());
    user_code* running = user_code_begin(queue.handle());
    ASSERT_TRUE(running);
    {
        flow all(port, {}, flow_action::to(queue));
        EXPECT_TRUE(eventually([&] { return queue.counters().delivered >= 10'000; }));
    }
    std::this_thread::sleep_for(10ms); // for what has been delivered to be received
    weftio_store_release_sys_u32(&queue.control()->abort, 1);
    EXPECT_EQ(user_code_end(running), queue.counters().delivered_bytes);
}

} // namespace
} // namespace weftio::test
