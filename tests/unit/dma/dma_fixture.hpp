// A DMA engine, two regions, and their expected content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/device/fixture.hpp"
#include "weftio/dma.hpp"
#include "weftio/kernel.hpp"
#include "weftio/progress.hpp"

namespace weftio::test {

/// Bytes that a DMA engine may read and write, and a model of their expected content.
class modelled_memory {
 public:
    modelled_memory(const dma_engine& engine, const device& device, std::size_t bytes, region_options options = {})
        : memory_(device.allocate(bytes, memory_kind::cpu_device)), model(bytes), region(engine, memory_, options)
    {
        std::minstd_rand random(static_cast<unsigned>(bytes));
        for (std::byte& each : model)
            each = static_cast<std::byte>(random());
        std::memcpy(memory_.cpu_address(), model.data(), bytes);
    }

    weftio_dev_buf buffer() const { return region.buffer(); }
    bool as_modelled() const { return std::memcmp(memory_.cpu_address(), model.data(), model.size()) == 0; }

 private:
    memory memory_;

 public:
    std::vector<std::byte> model;
    memory_region region;
};

/// The host's side of a queue on the CPU, in both modes of an engine.
class Dma : public testing::TestWithParam<engine_mode> {
 protected:
    static constexpr std::size_t bytes = 65536;

    weftio_dev_dma* handle() const { return queue.handle(); }
    std::int32_t copy(const modelled_memory& from, std::size_t at, const modelled_memory& to, std::size_t there,
                      std::size_t count, weftio_u32 flags = WEFTIO_DEV_SEND_NONE) const
    {
        return weftio_dev_dma_memcpy(handle(), from.buffer(), at, to.buffer(), there, count, flags);
    }
    /// Commits, and waits until all entries are done.
    std::int32_t done() const { return weftio_dev_dma_commit_wait(handle(), 0); }

    dma_engine engine{{.mode = GetParam()}};
    device cpu = device::open("cpu");
    dma_queue queue{engine, cpu, {.entries = 64}};
    modelled_memory one{engine, cpu, bytes}, other{engine, cpu, bytes + 64};
};

} // namespace weftio::test
