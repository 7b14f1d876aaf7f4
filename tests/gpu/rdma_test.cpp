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

} // namespace weftio::test
