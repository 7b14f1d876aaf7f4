// Kernels of a GPU that use queue pairs, in pinned memory: the cases of unit/rdma/kernels_test.cpp.
#include "fixture.hpp"
#include "unit/rdma/connections_cases.hpp"
#include "unit/rdma/datagram_cases.hpp"
#include "unit/rdma/kernel_cases.hpp"

namespace weftio::test {

namespace {

class GpuRdma : public gpu_fixture {
 protected:
    template <class Case>
    static void at_one_port_and_at_two(Case&& run)
    {
        for (const bool one_port : {true, false}) {
            SCOPED_TRACE(one_port ? "one port" : "two ports");
            kernel_cases ends(one_port, gpu_spec());
            run(ends);
        }
    }
};

} // namespace

TEST_F(GpuRdma, KernelsDoEverythingToMemoryAsAModelDoes)
{
    at_one_port_and_at_two([](kernel_cases& ends) { ends.do_everything(); });
}

TEST_F(GpuRdma, KernelsWriteFromManyLanesOfSeveralBlocks)
{
    at_one_port_and_at_two([](kernel_cases& ends) { ends.write_from_many_lanes(); });
}

TEST_F(GpuRdma, KernelsSeeAllBytesInFrontOfASignal)
{
    at_one_port_and_at_two([](kernel_cases& ends) { ends.play_ping_pong(); });
}

TEST_F(GpuRdma, KernelsLendMemoryAndGetItBack)
{
    at_one_port_and_at_two([](kernel_cases& ends) { ends.lend_and_return(); });
}

TEST_F(GpuRdma, KernelsEndWhenTheHostWants)
{
    at_one_port_and_at_two([](kernel_cases& ends) { ends.end_when_the_host_wants(); });
}

TEST_F(GpuRdma, KernelsAnswerAllByTheConnectionThatAsked)
{
    for (const bool one_port : {true, false}) {
        SCOPED_TRACE(one_port ? "one port" : "two ports");
        connections_cases ends({one_port, engine_mode::thread}, gpu_spec());
        ends.answer_all();
    }
}

TEST_F(GpuRdma, KernelsAnswerDatagramsToTheQueuePairThatAsked)
{
    for (const bool one_port : {true, false}) {
        SCOPED_TRACE(one_port ? "one port" : "two ports");
        datagram_cases({one_port, engine_mode::thread}, gpu_spec()).answer_all();
    }
}

/// Payload in the GPU's own memory at both ends, of which the CPU can access no byte.
TEST_F(GpuRdma, KernelsWriteBetweenMemoriesOfTheGpu)
{
    constexpr std::size_t bytes = 64000;
    for (const bool one_port : {true, false}) {
        SCOPED_TRACE(one_port ? "one port" : "two ports");
        public_pair ends({one_port, engine_mode::thread}, {.entries = 64, .receive_entries = 64}, gpu_spec());
        ends.connect();
        memory from = gpu().allocate(bytes, memory_kind::device), into = gpu().allocate(bytes, memory_kind::device);
        std::vector<std::uint8_t> content(bytes), came(bytes);
        for (std::size_t at = 0; at != bytes; ++at)
            content[at] = static_cast<std::uint8_t>(at * 7 + at / 251);
        from.upload(content.data(), bytes);
        memory_region source(ends.ports.get(0), from);
        memory_region target(ends.ports.get(one_port ? 0 : 1), into, {.rights = all_rights});
        const buf_arr pieces(source, gpu(), {.count = 640, .buffer_bytes = 100, .stride_bytes = 100});
        const shared_words said(gpu(), 2);
        running_kernel kernel = gpu().launch(rdma_writes_pieces_kernel, {2, 32}, ends.queue(0),
                                             remote_region::of(target).on_device(), pieces, said.on_device());
        ASSERT_TRUE(kernel.wait_for(patience));
        EXPECT_EQ(ends.queue(0).counters().done, 640u);
        into.download(came.data(), bytes);
        EXPECT_EQ(came, content);
    }
}

} // namespace weftio::test
