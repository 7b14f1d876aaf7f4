// Strong entries of many blocks on a GPU: each is whole when the doorbell record names it, and is there once.
#include <cstdlib>

#include "fixture.hpp"
#include "unit/txq/checked_ring.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(publish_in_every_way, "publication_kernels.h");

namespace weftio::test {
namespace {

struct publication_case {
    grid shape;
    std::uint32_t depth, start, rounds;
};

/// How often each lane posts: WEFTIO_GPU_ROUNDS, for a run under compute-sanitizer, which slows kernels down.
std::uint32_t rounds_of(const publication_case& tried)
{
    const char* wanted = std::getenv("WEFTIO_GPU_ROUNDS");
    return wanted ? static_cast<std::uint32_t>(std::strtoul(wanted, nullptr, 10)) : tried.rounds;
}

class GpuPublication : public gpu_fixture, public testing::WithParamInterface<publication_case> {};

TEST_P(GpuPublication, NamesWholeEntriesOnceEach)
{
    const publication_case& tried = GetParam();
    EXPECT_EQ(play_publications(gpu(), publish_in_every_way_kernel, tried.shape, tried.depth, tried.start,
                                rounds_of(tried), 60s),
              "");
}

INSTANTIATE_TEST_SUITE_P(From, GpuPublication,
                         testing::Values(publication_case{{1, 32}, 64, 0, 4000},
                                         publication_case{{3, 40}, 64, 0x10000 - 777, 1000},
                                         publication_case{{8, 256}, 1024, 0u - 777, 1000},
                                         publication_case{{64, 256}, 32768, 0u - 40000, 300},
                                         publication_case{{64, 32}, 512, 5, 1000}),
                         [](const auto& info) {
                             return std::to_string(info.param.shape.blocks) + "x" +
                                    std::to_string(info.param.shape.lanes) + "_depth_" +
                                    std::to_string(info.param.depth);
                         });

} // namespace
} // namespace weftio::test
