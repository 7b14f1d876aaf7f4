// One port with queues of two CPU devices; tests/gpu has the same with two GPUs.
#include "sanitized.hpp"
#include "two_device_cases.hpp"

namespace weftio::test {
namespace {

#ifdef WEFTIO_TEST_SANITIZED
constexpr std::uint32_t packets = 2000, rounds = 100;
#else
constexpr std::uint32_t packets = 20'000, rounds = 300;
#endif

class TwoDevicesAtOnePort : public testing::Test {
 protected:
    two_device_cases cases{device::open("cpu"), device::open("cpu")};
};

TEST_F(TwoDevicesAtOnePort, StreamFramesToEachOther)
{
    for (const unsigned from : {0u, 1u})
        cases.stream(from, {}, 64, packets);
}

TEST_F(TwoDevicesAtOnePort, WriteToEachOthersMemory)
{
    cases.play_ping_pong(rounds);
}

} // namespace
} // namespace weftio::test
