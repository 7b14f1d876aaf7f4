// Buffers of the host.
#pragma once

#include <atomic>

#include "doca_buf_inventory.h"
#include "mmap.hpp"

struct doca_buf_inventory {
    static constexpr const char* noun = "buffer inventory";

    explicit doca_buf_inventory(std::size_t count) : buffers(count) {}

    const std::size_t buffers;
    bool started = false;
    std::shared_ptr<std::atomic<std::size_t>> out = std::make_shared<std::atomic<std::size_t>>(0);
};

struct doca_buf {
    static constexpr const char* noun = "buffer";

    doca_buf(std::shared_ptr<std::atomic<std::size_t>> of, std::shared_ptr<doca_mmap::registered> in, std::size_t at,
             std::size_t size, std::size_t data)
        : range(std::move(in)), offset(at), bytes(size), data_bytes(data), out_(std::move(of))
    {}
    ~doca_buf() { --*out_; }

    const std::shared_ptr<doca_mmap::registered> range;
    const std::size_t offset, bytes; ///< in the range
    std::size_t data_bytes;          ///< the first bytes; those behind them are room
    std::uint16_t references = 1;

    /// Bytes [from, from + count) for entries. @throws weftio::error as memory_region::buffer
    weftio_dev_buf part(std::size_t from, std::size_t count) const
    {
        return range->region.buffer(range->offset + offset + from, count);
    }

 private:
    const std::shared_ptr<std::atomic<std::size_t>> out_; ///< of the inventory: how many are out, this one included
};
