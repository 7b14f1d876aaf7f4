// Memory of each of CUDA's allocators, and memory that outlives who made it, with the driver itself.
#include "allocators.hpp"
#include "fixture.hpp"
#include "holder_process.hpp"

namespace weftio::test {
namespace {

class GpuHeld : public gpu_fixture {};
class GpuAllocated : public gpu_fixture, public testing::WithParamInterface<allocator_row> {};

} // namespace

TEST_P(GpuAllocated, IsAsTheTableSays)
{
    expect_row(gpu(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuAllocated, testing::ValuesIn(allocator_rows));

TEST_F(GpuHeld, IsHeldByAProcessWithoutAGpu)
{
    expect_held_elsewhere(gpu());
}

} // namespace weftio::test
