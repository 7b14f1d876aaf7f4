// Kernels that do not receive any more are reported in the log.
#include <fcntl.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "doca_log.h"
#include "two_devices.hpp"

namespace weftio::test {
namespace {

/// What the library has logged so far, in a file that the log keeps.
std::string logged()
{
    static std::FILE* const file = [] {
        std::FILE* made = std::tmpfile();
        fcntl(fileno(made), F_SETFD, FD_CLOEXEC);
        doca_log_backend* backend = nullptr;
        EXPECT_EQ(doca_log_backend_create_with_file_sdk(made, &backend), DOCA_SUCCESS);
        return made;
    }();
    std::string text(1 << 20, '\0');
    const auto bytes = pread(fileno(file), text.data(), text.size(), 0);
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return text;
}

/// Whether the library logs the sentence, while `meanwhile` happens again and again.
template <class Body>
bool is_logged(const std::string& sentence, Body&& meanwhile)
{
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
         logged().find(sentence) == std::string::npos;)
        if (std::chrono::steady_clock::now() > end)
            return false;
        else
            meanwhile();
    return true;
}

/// Receives a packet, and then computes for ever.
void compute_for_ever(doca_gpu_eth_rxq* rxq, std::uint32_t* ends)
{
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    doca_gpu_dev_eth_rxq_receive_thread(rxq, 1, 0, &count, &first);
    for (std::uint32_t attempt = 0; !weftio_load_relaxed_u32(ends); ++attempt)
        weftio_relax(attempt);
}

/// Sends one frame a hundred times.
void send_a_hundred(doca_gpu_eth_txq* txq, doca_gpu_buf_arr* frames)
{
    doca_gpu_buf* buf = nullptr;
    doca_gpu_dev_buf_get_buf(frames, 0, &buf);
    for (int frame = 0; frame < 100; ++frame)
        doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, 60, DOCA_GPU_SEND_FLAG_NONE);
    doca_gpu_dev_eth_txq_commit_strong(txq);
    doca_gpu_dev_eth_txq_push(txq);
}

class DocaWatch : public DocaDevices {
 protected:
    void SetUp() override
    {
        DocaDevices::SetUp();
        logged();
        in.make_queue(gpu, second);
        receiving::init_flow();
        in.start_port();
        in.add_udp_pipe(true);
    }
    void TearDown() override
    {
        in.end();
        doca_flow_destroy();
        DocaDevices::TearDown();
    }
    std::string queue() const { return "receive queue " + std::to_string(in.handle->queue->queue) + ": "; }

    receiving in;
};

TEST_F(DocaWatch, TellsOfAKernelThatLetsPacketsBeDropped)
{
    sending out;
    out.make_queue(gpu, first);
    out.start();
    std::uint32_t ends = 0;
    auto kernel = launch(compute_for_ever, 1u, in.handle, &ends);
    EXPECT_TRUE(is_logged(queue() + "no kernel has received for 2 s", [&] {
        auto sender = launch(send_a_hundred, 1u, out.handle, out.array_handle);
        EXPECT_TRUE(sender.wait_for(std::chrono::seconds(20)));
    })) << logged();
    weftio_store_relaxed_u32(&ends, 1);
    EXPECT_TRUE(kernel.wait_for(std::chrono::seconds(20)));
    out.end();
}

TEST_F(DocaWatch, TellsOfAKernelThatStandsStillInAReceiveCall)
{
    auto* control = in.handle->queue->control;
    weftio_dev_trace(control, 5, WEFTIO_DEV_FUNCTION_RECEIVE, 3, WEFTIO_DEV_OK); // and never again
    EXPECT_TRUE(is_logged(queue() + "a kernel in a receive call (block 0, packet 3) has given no sign of life", [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    })) << logged();
    weftio_dev_trace(control, 6, WEFTIO_DEV_FUNCTION_NONE, 3, WEFTIO_DEV_OK);
}

} // namespace
} // namespace weftio::test
