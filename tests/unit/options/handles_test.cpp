// Handles that are something else than a kernel takes them for.
#include "checked_kernels.h" // first: it asks for checks

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fixture.hpp"

WEFTIO_DEFINE_KERNEL(tries_handles, "checked_kernels.h");
WEFTIO_DEFINE_KERNEL(finds_wrong_handles, "checked_kernels.h");

namespace weftio::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

inline void takes_all(weftio_dev_eth_rxq*, weftio_dev_eth_txq*, weftio_dev_dma*, weftio_dev_semaphore*,
                      const weftio_dev_buf_arr*, weftio_dev_rdma*, weftio_dev_rdma_recv*)
{}

class Handles : public OnEachDevice {
 protected:
    void SetUp() override
    {
        OnEachDevice::SetUp();
        if (IsSkipped())
            return;
        rxq.emplace(port_, where());
        txq.emplace(port_, where());
        dma.emplace(engine, where());
        items.emplace(where(), semaphore_options{.items = 4, .custom_info_bytes = 8, .check_transitions = false});
        array.emplace(port_, where(), buf_arr_options{.count = 2, .buffer_bytes = 64});
        rdma.emplace(rdma_device(port_, {.address = "10.0.0.1"}), where());
    }
    handles right() const
    {
        return {rxq->handle(),
                txq->handle(),
                dma->handle(),
                items->handle(),
                array->handle(),
                rdma->handle(),
                rdma->receives().handle()};
    }
    /// A handle like this one, whose first word is this.
    template <class Handle>
    Handle* copy(const Handle* from, weftio_u32 abi)
    {
        copies.push_back(where().allocate(sizeof(Handle), memory_kind::cpu_device));
        std::memcpy(copies.back().cpu_address(), from, sizeof(Handle));
        std::memcpy(copies.back().cpu_address(), &abi, sizeof abi);
        return static_cast<Handle*>(copies.back().device_address());
    }
    std::vector<weftio_u32> tried(const handles& given)
    {
        memory hidden = where().allocate(sizeof given, memory_kind::cpu_device);
        hidden.upload(&given, sizeof given);
        const shared_words said(where(), ANSWERS);
        running_kernel kernel = where().launch(tries_handles_kernel, {.blocks = 1, .lanes = 1},
                                               static_cast<handles*>(hidden.device_address()), said.on_device());
        EXPECT_TRUE(kernel.wait_for(patience));
        return said.all();
    }

    static std::vector<weftio_u32> first_of(const std::vector<weftio_u32>& said, std::size_t count,
                                            std::size_t from = 0)
    {
        const auto begin = said.begin() + static_cast<std::ptrdiff_t>(from);
        return {begin, begin + static_cast<std::ptrdiff_t>(count)};
    }
    static void expect_all_refused(const std::vector<weftio_u32>& said)
    {
        EXPECT_THAT(first_of(said, STATUSES), Each(static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT)));
        EXPECT_EQ(said[STATUSES], WEFTIO_DEV_SEMAPHORE_ERROR);
        EXPECT_THAT(first_of(said, ABORTS, STATUSES + ITEM_STATUSES), Each(1u)) << "an end is wanted";
        EXPECT_THAT(first_of(said, THERE, ANSWERS - THERE), Each(0u)) << "nothing is there";
    }

    dma_engine engine;
    std::optional<eth_rxq> rxq;
    std::optional<eth_txq> txq;
    std::optional<dma_queue> dma;
    std::optional<semaphore> items;
    std::optional<buf_arr> array;
    std::optional<rdma_queue> rdma;
    std::vector<memory> copies;
};

TEST_P(Handles, AreTakenByAKernelThatChecks)
{
    constexpr auto not_found = static_cast<weftio_u32>(WEFTIO_DEV_NOT_FOUND),
                   timeout = static_cast<weftio_u32>(WEFTIO_DEV_TIMEOUT);
    std::vector<weftio_u32> said = tried(right());
    EXPECT_THAT(first_of(said, STATUSES),
                ElementsAre(0, not_found, 0, 0, 0, 0, not_found, 0, 0, 0, 0, not_found, 0, 0, 0, 0, 0, //
                            0, 0, 0, not_found, 0, 0, 0, 0, 0, 0, timeout, not_found));
    EXPECT_EQ(said[STATUSES], WEFTIO_DEV_SEMAPHORE_FREE);
    EXPECT_THAT(first_of(said, ABORTS, STATUSES + ITEM_STATUSES), Each(0u));
    EXPECT_THAT(first_of(said, THERE, ANSWERS - THERE), Each(1u));
}

TEST_P(Handles, OfAnotherKindAreRefusedByAKernelThatChecks)
{
    const handles all = right();
    std::vector<weftio_u32> said =
        tried({reinterpret_cast<weftio_dev_eth_rxq*>(all.txq), reinterpret_cast<weftio_dev_eth_txq*>(all.rxq),
               reinterpret_cast<weftio_dev_dma*>(all.rxq), reinterpret_cast<weftio_dev_semaphore*>(all.array),
               reinterpret_cast<weftio_dev_buf_arr*>(all.semaphore), reinterpret_cast<weftio_dev_rdma*>(all.rxq),
               reinterpret_cast<weftio_dev_rdma_recv*>(all.rxq)});
    expect_all_refused(said);
    handles mixed = all;
    mixed.dma = reinterpret_cast<weftio_dev_dma*>(all.txq);
    mixed.rdma = reinterpret_cast<weftio_dev_rdma*>(all.dma);
    mixed.recv = reinterpret_cast<weftio_dev_rdma_recv*>(all.rdma);
    const std::vector<weftio_u32> mixed_said = tried(mixed);
    EXPECT_EQ(mixed_said[FILL], static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT)) << "no copies for a port";
    EXPECT_EQ(mixed_said[WRITE], static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT)) << "no RDMA for a DMA engine";
    EXPECT_EQ(mixed_said[POST], static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT)) << "no receives to be sent";
}

TEST_P(Handles, OfAnotherVersionAreRefusedByAKernelThatChecks)
{
    constexpr weftio_u32 next_version = 0x10000;
    const handles all = right();
    std::vector<weftio_u32> said = tried(
        {copy(all.rxq, WEFTIO_DEV_ABI_ETH_RXQ + next_version), copy(all.txq, WEFTIO_DEV_ABI_ETH_TXQ + next_version),
         copy(all.dma, WEFTIO_DEV_ABI_DMA + next_version), copy(all.semaphore, WEFTIO_DEV_ABI_SEMAPHORE + next_version),
         copy(all.array, WEFTIO_DEV_ABI_BUF_ARR + next_version), copy(all.rdma, WEFTIO_DEV_ABI_RDMA + next_version),
         copy(all.recv, WEFTIO_DEV_ABI_RDMA_RECV + next_version)});
    expect_all_refused(said);
}

TEST_P(Handles, OfAStructureThatAreWrongAreNamedByTheKernel)
{
    const auto wrong_of = [&](const handles& given) {
        memory hidden = where().allocate(sizeof given, memory_kind::cpu_device);
        hidden.upload(&given, sizeof given);
        const shared_words wrong(where(), 5);
        EXPECT_TRUE(where()
                        .launch(finds_wrong_handles_kernel, {.blocks = 1, .lanes = 1},
                                static_cast<handles*>(hidden.device_address()), wrong.on_device())
                        .wait_for(patience));
        return wrong.all();
    };
    const handles all = right();
    EXPECT_THAT(wrong_of(all), ElementsAre(0, 0, 0, 0, 0));
    EXPECT_THAT(wrong_of({}), ElementsAre(1, 1, 1, 1, 1)) << "of nothing";
    handles two_wrong = all;
    two_wrong.dma = reinterpret_cast<weftio_dev_dma*>(all.txq);
    two_wrong.array = copy(all.array, WEFTIO_DEV_ABI_BUF_ARR + 0x10000);
    EXPECT_THAT(wrong_of(two_wrong), ElementsAre(0, 0, 1, 0, 1));
}

kernel<weftio_dev_eth_rxq*, weftio_dev_eth_txq*, weftio_dev_dma*, weftio_dev_semaphore*, const weftio_dev_buf_arr*,
       weftio_dev_rdma*, weftio_dev_rdma_recv*>
takes_all_kernel()
{
    return {.name = "takes_all",
            .function = takes_all,
            .source = "#include \"weftio/device/dma.h\"\n#include \"weftio/device/eth_txq.h\"\n"
                      "#include \"weftio/device/rdma.h\"\n"
                      "WEFTIO_KERNEL void takes_all(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* a,\n"
                      "    WEFTIO_GLOBAL struct weftio_dev_eth_txq* b, WEFTIO_GLOBAL struct weftio_dev_dma* c,\n"
                      "    WEFTIO_GLOBAL struct weftio_dev_semaphore* d,\n"
                      "    const WEFTIO_GLOBAL struct weftio_dev_buf_arr* e, WEFTIO_GLOBAL struct weftio_dev_rdma* f,\n"
                      "    WEFTIO_GLOBAL struct weftio_dev_rdma_recv* g) {}\n",
            .cuda_image = {},
            .file = "takes_all.h"};
}

TEST_P(Handles, OfAnotherKindOrVersionAreRefusedAtLaunch)
{
    const auto takes = takes_all_kernel();
    const auto launch = [&](const handles& given) {
        running_kernel kernel = where().launch(takes, {.blocks = 1, .lanes = 1}, given.rxq, given.txq, given.dma,
                                               given.semaphore, given.array, given.rdma, given.recv);
        EXPECT_TRUE(kernel.wait_for(patience));
    };
    const handles all = right();
    EXPECT_NO_THROW(launch(all));
    EXPECT_NO_THROW(launch({})) << "no handle is the kernel's business";
    const auto refused = [&](const std::string& argument, const handles& given) {
        const error thrown = error_of([&] { launch(given); });
        EXPECT_EQ(thrown.code(), errc::invalid_argument) << argument;
        EXPECT_THAT(thrown.what(), HasSubstr("takes_all: " + argument));
    };
    handles wrong = all;
    wrong.rxq = reinterpret_cast<weftio_dev_eth_rxq*>(all.txq);
    const std::string version = fmt::format("of version {} and 128 bytes", WEFTIO_DEV_ABI_VERSION);
    refused(fmt::format("argument 1 has the wrong type: it is an eth_txq {0}, the kernel takes "
                        "an eth_rxq {0}",
                        version),
            wrong);
    wrong = all;
    wrong.txq = copy(all.txq, 0);
    refused("argument 2 has the wrong type: it is not a handle (0x00000000)", wrong);
    wrong = all;
    wrong.dma = copy(all.dma, WEFTIO_DEV_ABI_DMA + 0x10000);
    refused("argument 3", wrong);
    wrong = all;
    wrong.semaphore = copy(all.semaphore, WEFTIO_DEV_ABI_SEMAPHORE + 64);
    refused("argument 4", wrong);
    wrong = all;
    wrong.array = copy(all.array, WEFTIO_DEV_ABI_BUF_ARR + 0x10000);
    refused("argument 5", wrong);
    wrong = all;
    wrong.rdma = reinterpret_cast<weftio_dev_rdma*>(all.recv);
    refused(fmt::format("argument 6 has the wrong type: it is the receives of an rdma_queue of "
                        "version {} and 192 bytes, the kernel takes an rdma_queue {}",
                        WEFTIO_DEV_ABI_VERSION, version),
            wrong);
    wrong = all;
    wrong.recv = reinterpret_cast<weftio_dev_rdma_recv*>(all.rdma);
    refused("argument 7", wrong);
}

/// Eight bytes, as handles are aligned, and behind them memory that may not be touched.
class last_word {
 public:
    last_word() { mprotect(page() + bytes(), bytes(), PROT_NONE); }
    ~last_word() { munmap(pages_, 2 * bytes()); }
    last_word(const last_word&) = delete;
    last_word& operator=(const last_word&) = delete;
    template <class Handle>
    Handle* as() const
    {
        return reinterpret_cast<Handle*>(page() + bytes() - sizeof(weftio_u64));
    }
    template <class Handle>
    Handle* behind() const
    {
        return reinterpret_cast<Handle*>(page() + bytes());
    }

 private:
    static std::size_t bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
    std::byte* page() const { return static_cast<std::byte*>(pages_); }

    void* pages_ = mmap(nullptr, 2 * bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

TEST_P(Handles, AreLookedAtInTheirFirstWordAlone)
{
    if (GetParam() != std::string("cpu"))
        GTEST_SKIP() << "missed: memory that may not be touched; kernels of this device do not see it";
    const last_word none;
    const handles wrong{none.as<weftio_dev_eth_rxq>(),   none.as<weftio_dev_eth_txq>(), none.as<weftio_dev_dma>(),
                        none.as<weftio_dev_semaphore>(), none.as<weftio_dev_buf_arr>(), none.as<weftio_dev_rdma>(),
                        none.as<weftio_dev_rdma_recv>()};
    expect_all_refused(tried(wrong));
    EXPECT_THROW((void)where().launch(takes_all_kernel(), {.blocks = 1, .lanes = 1}, wrong.rxq, wrong.txq, wrong.dma,
                                      wrong.semaphore, wrong.array, wrong.rdma, wrong.recv),
                 error);
}

TEST_P(Handles, WhereNothingCanBeReadAreRefusedAtLaunch)
{
    const last_word none;
    handles at_protected{}, at_no_page{};
    at_protected.rxq = none.behind<weftio_dev_eth_rxq>();
    at_no_page.txq = reinterpret_cast<weftio_dev_eth_txq*>(std::uintptr_t{64});
    for (const handles& wrong : {at_protected, at_no_page})
        EXPECT_THAT(error_of([&] {
                        (void)where().launch(takes_all_kernel(), {.blocks = 1, .lanes = 1}, wrong.rxq, wrong.txq,
                                             wrong.dma, wrong.semaphore, wrong.array, wrong.rdma, wrong.recv);
                    }).what(),
                    HasSubstr("is not a handle: memory at 0x"));
}

INSTANTIATE_TEST_SUITE_P(On, Handles, testing::Values("cpu", "opencl"));

} // namespace
} // namespace weftio::test
