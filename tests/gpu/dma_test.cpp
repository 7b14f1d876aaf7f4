// Memory of a GPU, copied and filled by its copy engine, beside a plain model; kernels there that have it done.
#include <array>
#include <random>
#include <vector>

#include "fixture.hpp"
#include "weftio/dma.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(copy_shares, "gpu.kernel.h");

namespace weftio::test {
namespace {

/// A side of copies, and what a model has there.
struct side {
    side(const dma_engine& engine, const device& device, memory_kind kind, std::size_t bytes)
        : storage(device.allocate(bytes, kind)), region(engine, storage), model(bytes)
    {}
    memory storage;
    memory_region region;
    std::vector<std::byte> model;
};

class GpuDma : public gpu_fixture {
 protected:
    static constexpr std::size_t bytes = 1 << 20;

    /// Waits for all that has been submitted.
    void expect_done() const { EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), patience_ns), WEFTIO_DEV_OK); }
    void expect_as_modelled(const side& of)
    {
        side seen(engine, cpu, memory_kind::cpu_device, of.model.size());
        ASSERT_TRUE(queue.submit(
            dma_copy{.source = of.region.buffer(), .destination = seen.region.buffer(), .bytes = of.model.size()}));
        expect_done();
        EXPECT_EQ(std::memcmp(seen.storage.cpu_address(), of.model.data(), of.model.size()), 0);
    }

    dma_engine engine;
    device cpu = device::open("cpu");
    dma_queue queue{engine, cpu, {.entries = 64}};
};

} // namespace

/// Within the GPU, to and from pinned memory, to and from ordinary memory: at any place, of any length.
TEST_F(GpuDma, CopiesAndFillsWhatAModelDoes)
{
    std::array<side, 4> sides{
        side(engine, gpu(), memory_kind::device, bytes), side(engine, gpu(), memory_kind::device, bytes),
        side(engine, gpu(), memory_kind::cpu_device, bytes), side(engine, cpu, memory_kind::cpu_device, bytes)};
    std::minstd_rand random(5);
    for (unsigned step = 0; step < 4000; ++step) {
        const std::size_t to = random() % 4, from = (to + 1 + random() % 3) % 4;
        const std::size_t count = 1 + random() % (step % 16 == 0 ? bytes / 2 : 300);
        const std::size_t at = random() % (bytes - count), source = random() % (bytes - count);
        std::optional<std::uint32_t> submitted;
        if (random() % 3 == 0) {
            const auto pattern = static_cast<std::uint32_t>(random() * 2654435761u);
            submitted = queue.submit(dma_fill{.pattern = pattern,
                                              .destination = sides[to].region.buffer(),
                                              .destination_offset = at,
                                              .bytes = count});
            for (std::size_t each = 0; each < count; ++each)
                std::memcpy(&sides[to].model[at + each], reinterpret_cast<const char*>(&pattern) + each % 4, 1);
        } else {
            submitted = queue.submit(dma_copy{.source = sides[from].region.buffer(),
                                              .source_offset = source,
                                              .destination = sides[to].region.buffer(),
                                              .destination_offset = at,
                                              .bytes = count});
            std::memcpy(&sides[to].model[at], &sides[from].model[source], count);
        }
        ASSERT_TRUE(submitted);
        if (step % 32 == 31)
            expect_done(); // room for the next
    }
    expect_done();
    EXPECT_EQ(queue.counters().copied, 4000u);
    for (const side& each : sides)
        expect_as_modelled(each);
}

TEST_F(GpuDma, CopiesLongPiecesInParts)
{
    constexpr std::size_t long_bytes = (std::size_t{48} << 20) + 12345;
    side there(engine, gpu(), memory_kind::device, long_bytes), back(engine, gpu(), memory_kind::device, long_bytes),
        here(engine, gpu(), memory_kind::cpu_device, long_bytes);
    std::minstd_rand random(7);
    for (std::byte& each : here.model)
        each = static_cast<std::byte>(random());
    std::memcpy(here.storage.cpu_address(), here.model.data(), long_bytes);
    const side* way[] = {&here, &there, &back};
    for (unsigned hop = 0; hop < 2; ++hop)
        ASSERT_TRUE(queue.submit(dma_copy{
            .source = way[hop]->region.buffer(), .destination = way[hop + 1]->region.buffer(), .bytes = long_bytes}));
    expect_done();
    back.model = here.model;
    expect_as_modelled(back);
}

/// The kernel commits and waits itself, and sees the bytes: of the GPU's memory, and of pinned memory.
TEST_F(GpuDma, KernelsHaveMemoryCopiedAndSeeIt)
{
    constexpr std::uint32_t blocks = 4, lanes = 64, share = 4096, all = blocks * lanes * share;
    dma_queue of_kernel(engine, gpu(), {.entries = 256});
    side near(engine, gpu(), memory_kind::device, all), other(engine, gpu(), memory_kind::device, all),
        pinned(engine, gpu(), memory_kind::cpu_device, all);
    auto expect_copied = [&](const side& from, const side& to) {
        const shared_words results(gpu(), 2);
        running_kernel running = gpu().launch(copy_shares_kernel, {blocks, lanes}, of_kernel, from.region.buffer(),
                                              to.region.buffer(), std::uint32_t{share}, results.on_device());
        ASSERT_TRUE(running.wait_for(patience)) << running.dump();
        EXPECT_EQ(results.all(), (std::vector<std::uint32_t>{0, blocks * lanes}));
    };
    for (std::uint32_t word = 0; word < all / 4; ++word)
        std::memcpy(static_cast<std::byte*>(pinned.storage.cpu_address()) + word * 4, &word, 4);
    expect_copied(pinned, near);
    expect_copied(near, other);
    ASSERT_TRUE(queue.submit(dma_fill{.pattern = 0, .destination = pinned.region.buffer(), .bytes = all}));
    expect_done();
    expect_copied(other, pinned);
    for (std::uint32_t word = 0; word < all / 4; ++word)
        std::memcpy(&pinned.model[word * 4], &word, 4);
    expect_as_modelled(pinned);
    EXPECT_EQ(of_kernel.counters().copied, 3 * blocks * lanes);
}

} // namespace weftio::test
