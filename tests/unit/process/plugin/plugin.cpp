// A library that contains a copy of Weftio of its own, as plug-ins of programs do: plugin_test loads two of them.
#include "plugin.hpp"

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <sys/mman.h>

#include "stage.hpp"

namespace {

std::unique_ptr<weftio::test::stage> kept;

template <class Do>
bool say_errors(Do&& what) noexcept
{
    try {
        return what();
    } catch (const std::exception& refusal) {
        std::puts(refusal.what());
        return false;
    }
}

} // namespace

bool plugin_open(const char* spec) noexcept
{
    return say_errors([&] {
        kept = std::make_unique<weftio::test::stage>(spec);
        return kept->run();
    });
}

bool plugin_sends() noexcept
{
    return say_errors([] {
        const std::uint64_t before = kept->out.counters().sent;
        return weftio::test::eventually([&] { return kept->out.counters().sent > before + 100; });
    });
}

void plugin_close() noexcept
{
    kept = nullptr;
}

bool plugin_survives_unmapped_memory() noexcept
{
    constexpr std::size_t bytes = 65536;
    return say_errors([&] {
        void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        weftio::device device = weftio::device::open("cpu");
        weftio::dma_engine engine({.mode = weftio::engine_mode::inline_worker});
        weftio::dma_queue queue(engine, device);
        const weftio::memory adopted = device.adopt(pages, bytes),
                             own = device.allocate(bytes, weftio::memory_kind::cpu_device);
        const weftio::memory_region from(engine, adopted), to(engine, own);
        // Gone, but its addresses are kept: another thread would get them for memory of its own.
        mmap(pages, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        weftio_dev_dma_memcpy(queue.handle(), to.buffer(), 0, from.buffer(), 0, bytes, 0);
        return weftio_dev_dma_commit_wait(queue.handle(), 0) == WEFTIO_DEV_QUEUE_ERROR;
    });
}
