// Kernels of two devices with queues at one port: the cases that the suites of the CPU and of GPUs share.
#pragma once

#include <array>
#include <cstring>
#include <optional>

#include <gmock/gmock.h>

#include "end_memory.hpp"
#include "rdma_kernels.h"
#include "stream_kernels.h"
#include "unit/device/fixture.hpp"
#include "weftio/kernel.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(stream_out, "stream_kernels.h");
WEFTIO_DEFINE_KERNEL(stream_in, "stream_kernels.h");
WEFTIO_DEFINE_KERNEL(rdma_plays_one_end, "rdma_kernels.h");

namespace weftio::test {

class two_device_cases {
 public:
    /// Where frames are sent from and where they arrive.
    struct memory_of_frames {
        memory_kind sent = memory_kind::cpu_device, received = memory_kind::cpu_device;
    };

    two_device_cases(const device& first, const device& second) : devices_{first, second} {}

    /// A kernel of device `from` sends numbered frames, a kernel of the other one checks every byte and the order.
    void stream(unsigned from, memory_of_frames where, std::uint32_t bytes, std::uint32_t total)
    {
        const device &sender = devices_[from], &receiver = devices_[1 - from];
        eth_rxq rx(port_, receiver, {.packets = frames, .buffers = where.received, .verify_checksums = false});
        eth_txq tx(port_, sender, {.entries = frames});
        const memory room = sender.allocate(std::size_t{frames} * bytes, where.sent);
        const memory_region region(port_, room);
        buf_arr arr(region, sender, {.count = frames, .buffer_bytes = bytes, .stride_bytes = bytes});
        const flow all(port_, {}, flow_action::to(rx));
        const shared_words sent(sender, words_of_verdict), received(receiver, words_of_verdict);
        running_kernel in = receiver.launch(stream_in_kernel, {1, lanes}, rx, verdict_of(received), total, bytes);
        running_kernel out = sender.launch(stream_out_kernel, {1, lanes}, tx, arr, verdict_of(sent), total, bytes);
        EXPECT_TRUE(in.wait_for(5 * patience)) << in.dump() << out.dump();
        EXPECT_TRUE(out.wait_for(patience));
        EXPECT_EQ(received[0], total);
        EXPECT_EQ(received[1] + sent[1], 0u) << "wrong words, lengths or statuses";
    }

    /// Kernels of both devices write to each other's memory in turn, and check every word.
    void play_ping_pong(std::uint32_t rounds)
    {
        std::array<std::optional<end>, 2> ends;
        for (unsigned which = 0; which < 2; ++which)
            ends[which].emplace(port_, devices_[which], which);
        for (unsigned which = 0; which < 2; ++which)
            ends[which]->queue.connect(ends[1 - which]->queue.address());
        std::array<running_kernel, 2> kernels;
        for (unsigned which = 0; which < 2; ++which)
            kernels[which] = devices_[which].launch(rdma_plays_one_end_kernel, {}, ends[which]->queue,
                                                    remote_region::of(ends[1 - which]->memory.region).on_device(),
                                                    ends[which]->arr, which, rounds, ends[which]->said.on_device());
        for (unsigned which = 0; which < 2; ++which) {
            EXPECT_TRUE(kernels[which].wait_for(patience)) << kernels[which].dump();
            EXPECT_EQ(ends[which]->said[0], rounds) << "at device " << which;
        }
    }

 private:
    static constexpr std::uint32_t frames = 1024, lanes = 64;
    static constexpr std::size_t words_of_verdict = sizeof(verdict) / sizeof(weftio_u32);

    static verdict* verdict_of(const shared_words& words) { return reinterpret_cast<verdict*>(words.on_device()); }

    struct end {
        end(const port& at, const device& device, unsigned which)
            : rdma(at, {.address = which == 0 ? "10.0.0.1" : "10.0.0.2"}),
              memory(at, device, 4096, {.rights = all_rights}),
              queue(rdma, device, {.entries = 64, .receive_entries = 64, .timeout = 18}),
              arr(memory.region, device, {.count = 1, .buffer_bytes = 4096}), said(device, 1)
        {
            std::memset(memory.data() + 2048, 0, 8); // the signal
        }

        rdma_device rdma;
        end_memory memory;
        rdma_queue queue;
        buf_arr arr;
        shared_words said;
    };

    std::array<device, 2> devices_;
    port port_ = port::open("loopback", {.idle = idle_policy::busy, .hold_when_full = port_options::hold::on});
};

} // namespace weftio::test
