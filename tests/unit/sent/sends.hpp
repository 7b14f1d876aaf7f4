// A kernel that sends, and the results of its sends.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sends_kernels.h"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(sends_some, "sends_kernels.h");

namespace weftio::test {

/// A send queue of a port; `said` is the text of the last failure.
struct sends {
    explicit sends(const std::string& spec, port_options options = {}) : port(port::open(spec, std::move(options)))
    {
        progress.attach(queue,
                        {.on_sent = {}, .on_error = [this](const send_failure& failure) { said = failure.text; }});
    }
    /// Sends `count` frames of `bytes` bytes by a kernel, and waits until the NIC is done with all entries.
    void run(std::uint32_t bytes, std::uint32_t count)
    {
        const std::uint64_t before = queue.counters().sent;
        auto kernel = device.launch(sends_some_kernel, {}, queue, frames, bytes, count);
        EXPECT_TRUE(kernel.wait_for(patience));
        EXPECT_TRUE(eventually([&] { return queue.failed() || queue.counters().sent >= before + count; }));
        progress.progress();
        EXPECT_TRUE(eventually([&] {
            const eth_txq_counters seen = queue.counters();
            return seen.enqueued == seen.sent + seen.waited + seen.failed + seen.flushed;
        }));
    }

    weftio::device device = weftio::device::open("cpu");
    weftio::port port;
    eth_txq queue{port, device, {.entries = 64}};
    buf_arr frames{port, device, {.count = 1, .buffer_bytes = 16384}};
    progress_engine progress;
    std::string said;
};

} // namespace weftio::test
