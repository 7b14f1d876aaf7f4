// Kernels see what a NIC has written behind a flush, where its handle says that they need one.
#include <array>
#include <cstring>
#include <string>

#include <gmock/gmock.h>

#include "flush_kernels.h"
#include "unit/device/fixture.hpp"
#include "unit/rdma/public_pair.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(flush_received, "flush_kernels.h");
WEFTIO_DEFINE_KERNEL(flush_needed, "flush_kernels.h");

namespace weftio::test {

namespace {

using testing::ElementsAre;

/// Two queue pairs of one port, and what kernels say of messages from one to the other.
class flushed_ends : public queue_ends {
 public:
    static constexpr std::uint32_t messages = 20, bytes = 400;

    flushed_ends(port& at, const std::string& device_spec)
        : queue_ends({&at, &at}, engine_mode::thread, {.entries = 64, .receive_entries = 64}, device_spec)
    {
        std::memset(memory(0).data(), 0, memory_bytes);
        std::memset(memory(1).data(), 0, memory_bytes);
        for (std::uint32_t at_word = 0; at_word < messages * bytes / 4; ++at_word) {
            const std::uint32_t word = at_word / (bytes / 4) * 1000 + at_word % (bytes / 4) + 1;
            std::memcpy(memory(0).data() + at_word * sizeof word, &word, sizeof word);
        }
        connect();
    }
    /// The words that flush_received() leaves.
    std::vector<weftio_u32> receive(weftio_u32 how)
    {
        const buf_arr_options shape{.count = messages, .buffer_bytes = bytes, .stride_bytes = bytes};
        const buf_arr mine(memory(0).region, where, shape), theirs(memory(1).region, where, shape);
        const shared_words said(where, 5);
        running_kernel kernel = where.launch(flush_received_kernel, {2, 1}, queue(0), queue(1), queue(1).receives(),
                                             mine, theirs, messages, how, said.on_device());
        EXPECT_TRUE(kernel.wait_for(patience));
        return said.all();
    }
};

class FlushByKernel : public testing::TestWithParam<const char*> {
 protected:
    static constexpr std::uint32_t all = flushed_ends::messages;

    /// At a port of this NIC.
    static std::vector<weftio_u32> receive(const char* nic, weftio_u32 how)
    {
        port at = port::open(nic);
        return flushed_ends(at, GetParam()).receive(how);
    }
};

} // namespace

TEST_P(FlushByKernel, IsNotNeededWhereACompletionMeansThatTheBytesAreThere)
{
    for (const char* nic : {"loopback", "cable:0"}) {
        SCOPED_TRACE(nic);
        EXPECT_THAT(receive(nic, FLUSH_WHERE_NEEDED), ElementsAre(all, 0u, 0u, 0u, 0u));
    }
}

TEST_P(FlushByKernel, BringsWhatWasLate)
{
    EXPECT_THAT(receive("cable:late", 0), ElementsAre(0u, all, 0u, 0u, 0u)) << "without";
    EXPECT_THAT(receive("cable:late", FLUSH_WHERE_NEEDED), ElementsAre(all, 0u, all, 0u, 0u));
}

TEST_P(FlushByKernel, BringsNothingToMemoryThatItDoesNotRead)
{
    EXPECT_THAT(receive("cable:late", FLUSH_WHERE_NEEDED | FLUSH_ELSEWHERE), ElementsAre(0u, all, all, 0u, 0u));
}

TEST_P(FlushByKernel, IsNeededAtBothSidesOfAQueuePairAndBehindAReset)
{
    port late = port::open("cable:late");
    flushed_ends ends(late, GetParam());
    for (unsigned round = 0; round < 2; ++round) {
        for (unsigned end = 0; end < 2; ++end) {
            const shared_words said(ends.where, 2);
            running_kernel kernel = ends.where.launch(flush_needed_kernel, {}, ends.queue(end),
                                                      ends.queue(end).receives(), said.on_device());
            ASSERT_TRUE(kernel.wait_for(patience));
            EXPECT_THAT(said.all(), ElementsAre(1u, 1u));
        }
        ends.reset();
    }
}

INSTANTIATE_TEST_SUITE_P(On, FlushByKernel, testing::Values("cpu", "opencl"),
                         [](const auto& info) { return std::string(info.param); });

} // namespace weftio::test
