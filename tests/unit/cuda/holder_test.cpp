// Memory of a GPU that outlives the process that made it, and what memory of each allocator can: on a stand-in.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <gmock/gmock.h>

#include "allocators.hpp"
#include "holder_process.hpp"
#include "stand_in.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/memory.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

constexpr std::size_t asked = 3 << 20, whole = 4 << 20;

class GpuHolder : public testing::Test {
 protected:
    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        gpu.emplace(device::open("cuda:0"));
    }
    void TearDown() override
    {
        if (driver().opened)
            driver().lack(0);
    }
    std::vector<char> content(const memory& of) const
    {
        std::vector<char> seen(of.bytes());
        detail::internals::backend(*gpu).download(seen.data(), of.device_address(), seen.size());
        return seen;
    }

    std::optional<device> gpu;
};

class GpuAllocators : public GpuHolder, public testing::WithParamInterface<allocator_row> {};

} // namespace

TEST_P(GpuAllocators, AreAsTheTableSays)
{
    expect_row(*gpu, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuAllocators, testing::ValuesIn(allocator_rows));

/// The maker has ended; keys of this process reach the bytes.
TEST_F(GpuHolder, IsThereWhenItsMakerHasEnded)
{
    const holder_process maker(WEFTIO_HOLDER_PEER, {"make", std::to_string(asked), "cuda:0"}, WEFTIO_STAND_IN_FOLDER);
    std::optional<memory_holder> held(memory_holder::receive(maker.socket(), std::chrono::minutes(1)));
    ASSERT_EQ(maker.status(), 0);
    EXPECT_EQ(held->bytes(), whole);
    EXPECT_EQ(held->gpu(), "0001:01:01.0");
    const memory here = held->map(*gpu);
    held.reset();
    EXPECT_EQ(here.kind(), memory_kind::device);
    EXPECT_THAT(content(here), testing::Each('m'));
    const device cpu = device::open("cpu");
    const dma_engine engine({.mode = engine_mode::inline_worker});
    const memory to = cpu.allocate(whole, memory_kind::cpu_device);
    const memory_region source(engine, here), destination(engine, to);
    dma_queue queue(engine, cpu, {.entries = 64});
    ASSERT_EQ(weftio_dev_dma_memcpy(queue.handle(), source.buffer(), 0, destination.buffer(), 0, whole, 0),
              WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
    const auto* const seen = static_cast<const char*>(to.cpu_address());
    EXPECT_EQ(std::count(seen, seen + whole, 'm'), static_cast<std::ptrdiff_t>(whole));
}

TEST_F(GpuHolder, HandsOverWhatTheProgramHasMapped)
{
    const allocated memory(*gpu, allocator::mapped_for_others);
    std::memset(memory.address(), 'm', allocated::bytes);
    const memory_holder held = memory_holder::of(*gpu, static_cast<std::byte*>(memory.address()) + 5000);
    EXPECT_EQ(held.bytes(), allocated::bytes);
    const holder_process receiver(WEFTIO_HOLDER_PEER, {"receive", "cuda:0"}, WEFTIO_STAND_IN_FOLDER);
    held.send(receiver.socket());
    EXPECT_EQ(receiver.status(), 0);
    EXPECT_EQ(*static_cast<const char*>(memory.address()), 'r') << "as the other process has written";
}

/// The other process makes no call of CUDA.
TEST_F(GpuHolder, IsHeldByAProcessWithoutAGpu)
{
    expect_held_elsewhere(*gpu);
}

TEST_F(GpuHolder, IsMappedAsOftenAsAskedForAndZeroed)
{
    std::optional<memory_holder> held(memory_holder::make(*gpu, 1));
    EXPECT_EQ(held->bytes(), std::size_t{2} << 20);
    std::optional<memory> one(held->map(*gpu)), other(held->map(*gpu));
    held.reset();
    EXPECT_NE(one->device_address(), other->device_address());
    EXPECT_THAT(content(*one), testing::Each('\0'));
    static_cast<char*>(one->device_address())[7] = 'x';
    EXPECT_EQ(content(*other)[7], 'x');
    const void* const gone = one->device_address();
    one.reset();
    EXPECT_FALSE(memory_info::of(*gpu, gone).maker == memory_info::made_by::mem_map);
    EXPECT_EQ(content(*other)[7], 'x');
}

TEST_F(GpuHolder, RefusesGpusThatShareNothing)
{
    const std::pair<int, const char*> lacking[] = {{102, "maps no memory at addresses"},
                                                   {103, "gives no descriptor of memory"},
                                                   {110, "lets NICs reach no memory"}};
    for (const auto& [attribute, part] : lacking) {
        driver().lack(attribute);
        const error refused = error_of([&] { (void)memory_holder::make(*gpu, 1); });
        EXPECT_EQ(refused.code(), errc::not_supported);
        EXPECT_THAT(refused.what(), testing::HasSubstr(part));
    }
}

TEST_F(GpuHolder, RefusesWhatFitsNot)
{
    const device cpu = device::open("cpu"), second = device::open("cuda:1");
    EXPECT_EQ(error_of([&] { (void)memory_holder::make(cpu, 1); }).code(), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)memory_holder::make(*gpu, 0); }).code(), errc::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)memory_holder::of(cpu, &cpu); }).code(), errc::invalid_argument);
    const memory_holder held = memory_holder::make(*gpu, 1);
    const error on_cpu = error_of([&] { (void)held.map(cpu); });
    EXPECT_EQ(on_cpu.code(), errc::not_reachable);
    EXPECT_THAT(on_cpu.what(), testing::HasSubstr("memory of the GPU at 0001:01:01.0, and cpu is none"));
    EXPECT_THAT(error_of([&] { (void)held.map(second); }).what(),
                testing::HasSubstr("this is memory of cuda:0, not of cuda:1"));
    const allocated memory(*gpu, allocator::mapped_for_others);
    EXPECT_THAT(error_of([&] { (void)memory_holder::of(second, memory.address()); }).what(),
                testing::HasSubstr("is that of cuda:0, not of cuda:1"));
}

/// A descriptor of something else, said to be a GPU's memory; and one of fewer bytes than were said.
TEST_F(GpuHolder, RefusesDescriptorsThatAreNotWhatWasSaid)
{
    struct {
        char mark[8] = {'w', 'f', 't', 'g', 'p', 'u', '0', '1'};
        std::uint64_t bytes = std::uint64_t{8} << 20;
        char gpu[16] = "0001:01:01.0";
    } said;
    const memory_holder real = memory_holder::make(*gpu, 1);
    const int other = memfd_create("other", MFD_CLOEXEC);
    for (const int descriptor : {other, real.descriptor()}) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        alignas(cmsghdr) char beside[CMSG_SPACE(sizeof descriptor)] = {};
        iovec part{&said, sizeof said};
        msghdr sent{};
        sent.msg_iov = &part;
        sent.msg_iovlen = 1;
        sent.msg_control = beside;
        sent.msg_controllen = sizeof beside;
        *CMSG_FIRSTHDR(&sent) = {CMSG_LEN(sizeof descriptor), SOL_SOCKET, SCM_RIGHTS};
        std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&sent)), &descriptor, sizeof descriptor);
        ASSERT_EQ(sendmsg(ends[1], &sent, 0), static_cast<ssize_t>(sizeof said));
        const memory_holder held = memory_holder::receive(ends[0]);
        const error refused = error_of([&] { (void)held.map(*gpu); });
        EXPECT_EQ(refused.code(), errc::invalid_argument) << refused.what();
        EXPECT_THAT(refused.what(),
                    testing::HasSubstr(descriptor == other ? "for no memory of a GPU" : "it has fewer"));
        close(ends[0]);
        close(ends[1]);
    }
    close(other);
}

} // namespace weftio::test
