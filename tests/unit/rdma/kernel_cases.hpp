// What kernels of one device do with a public_pair, and checks of their results: the cases that the suites of the CPU,
// of OpenCL and of GPUs share.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gmock/gmock.h>

#include "public_pair.hpp"
#include "rdma_kernels.h"

WEFTIO_DEFINE_KERNEL(rdma_does_everything, "rdma_kernels.h");
WEFTIO_DEFINE_KERNEL(rdma_writes_pieces, "rdma_kernels.h");
WEFTIO_DEFINE_KERNEL(rdma_plays_ping_pong, "rdma_kernels.h");
WEFTIO_DEFINE_KERNEL(rdma_lends, "rdma_kernels.h");

namespace weftio::test {

class kernel_cases : public public_pair {
 public:
    kernel_cases(bool one_port, const std::string& device_spec)
        : public_pair({one_port, engine_mode::thread}, {.entries = 64, .receive_entries = 64}, device_spec),
          one_port_(one_port)
    {
        for (unsigned end = 0; end < 2; ++end) // before connect(), after which the engines access the memory
            std::memset(memory(end).data() + signal_at, 0, 8);
        connect();
    }

    void do_everything()
    {
        std::vector<std::uint8_t> local_model = memory(0).copy(), remote_model = memory(1).copy();
        const shared_words said(where, RDMA_STATUSES + 1), reported(where, 12);
        running_kernel kernel = where.launch(rdma_does_everything_kernel, {}, queue(0), queue(1).receives(),
                                             remote_region::of(memory(1).region, 0, 4096).on_device(), mine, theirs,
                                             said.on_device(), reported.on_device());
        ASSERT_TRUE(kernel.wait_for(patience));
        std::vector<weftio_u32> statuses = said.all();
        EXPECT_EQ(statuses.back(), 24u);
        statuses.pop_back();
        EXPECT_THAT(statuses, testing::Each(0u));
        EXPECT_THAT(reported.all(), testing::ElementsAre(WEFTIO_DEV_RDMA_WRITE_IMM, 64u, 7u, 0u, WEFTIO_DEV_RDMA_SEND,
                                                         64u, 0u, 1u, WEFTIO_DEV_RDMA_SEND_IMM, 32u, 0xfedcba98u, 0u));
        std::copy_n(remote_model.begin() + 2048, 512, local_model.begin() + 2048);
        std::copy_n(remote_model.begin() + 2560, 16, local_model.begin() + 2560);
        const std::array<std::array<std::size_t, 3>, 6> copies{
            {{0, 100, 1500}, {1600, 0, 64}, {1700, 0, 28}, {3136, 0, 64}, {3200, 64, 32}, {2600, 0, 200}}};
        for (const auto& [to, from, count] : copies)
            std::memcpy(&remote_model[to], memory(0).data() + from, count);
        const std::array<std::pair<std::size_t, std::uint64_t>, 3> numbers{
            {{1736, 0x0102030405060708}, {2560, number_in(remote_model, 2560) + 5}, {2816, 42}}};
        for (const auto& [at, value] : numbers)
            std::memcpy(&remote_model[at], &value, sizeof value);
        EXPECT_EQ(memory(0).copy(), local_model);
        EXPECT_EQ(memory(1).copy(), remote_model);
    }

    void write_from_many_lanes()
    {
        const buf_arr pieces(memory(0).region, where, {.count = 640, .buffer_bytes = 100, .stride_bytes = 100});
        const shared_words said(where, 2);
        running_kernel kernel = where.launch(rdma_writes_pieces_kernel, {2, 32}, queue(0),
                                             remote_region::of(memory(1).region).on_device(), pieces, said.on_device());
        ASSERT_TRUE(kernel.wait_for(patience));
        EXPECT_EQ(said[0], 0u);
        EXPECT_EQ(said[1], 64u);
        EXPECT_EQ(queue(0).counters().done, 640u);
        queue(1).counters(); // synchronizes with the engine that has written the memory
        EXPECT_EQ(std::memcmp(memory(0).data(), memory(1).data(), 64000), 0);
    }

    void play_ping_pong()
    {
        constexpr weftio_u32 rounds = 300;
        const shared_words said(where, 2);
        running_kernel kernel = where.launch(
            rdma_plays_ping_pong_kernel, {2, 1}, queue(0), queue(1), remote_region::of(memory(0).region).on_device(),
            remote_region::of(memory(1).region).on_device(), mine, theirs, rounds, said.on_device());
        ASSERT_TRUE(kernel.wait_for(patience));
        EXPECT_EQ(said[0], rounds);
        EXPECT_EQ(said[1], rounds);
    }

    void lend_and_return()
    {
        constexpr weftio_u32 rounds = 1000; // the variant of the key repeats
        const memory_region lendable(ports.get(one_port_ ? 0 : 1), memory(1).memory,
                                     {.rights = access::local_write | access::bind});
        const buf_arr lent(lendable, where, {.count = 1, .buffer_bytes = 4096});
        const memory_window window(*devices[1], window_type::type_2);
        const shared_words said(where, 2);
        const auto begin = std::chrono::steady_clock::now();
        running_kernel kernel = where.launch(rdma_lends_kernel, {2, 1}, queue(1), queue(1).receives(), queue(0), lent,
                                             mine, remote_region::of(memory(0).region, signal_at, 8).on_device(),
                                             window.rkey(), rounds, said.on_device());
        ASSERT_TRUE(kernel.wait_for(patience));
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
        EXPECT_EQ(said[0], rounds);
        EXPECT_EQ(said[1], rounds + 1) << "and the write after the last return is refused";
        EXPECT_FALSE(window.standing().bound);
        queue(1).counters(); // synchronizes with the engine that has written the memory
        EXPECT_EQ(std::memcmp(memory(0).data(), memory(1).data() + 512, 64), 0);
        if (std::getenv("WEFTIO_TELL_TIMES"))
            std::printf("lend, write, return: %.1f us a round with launch\n", took.count() / rounds);
    }

    /// A kernel that waits for a peer that does not respond ends when the host asks it to.
    void end_when_the_host_wants()
    {
        const shared_words said(where, 2);
        running_kernel kernel = where.launch(
            rdma_plays_ping_pong_kernel, {}, queue(0), queue(1), remote_region::of(memory(0).region).on_device(),
            remote_region::of(memory(1).region).on_device(), mine, theirs, 1u, said.on_device());
        EXPECT_FALSE(kernel.wait_for(std::chrono::milliseconds(10)));
        EXPECT_THAT(kernel.dump(), testing::HasSubstr("rdma_queue"));
        kernel.stop();
        EXPECT_TRUE(kernel.wait_for(patience));
    }

 private:
    static constexpr std::size_t signal_at = 2048; ///< the same as in rdma_plays_ping_pong

    static std::uint64_t number_in(const std::vector<std::uint8_t>& bytes, std::size_t at)
    {
        std::uint64_t number = 0;
        std::memcpy(&number, &bytes[at], sizeof number);
        return number;
    }

    const bool one_port_;
    const buf_arr mine{memory(0).region, where, {.count = 1, .buffer_bytes = 4096}};
    const buf_arr theirs{memory(1).region, where, {.count = 1, .buffer_bytes = 4096}};
};

} // namespace weftio::test
