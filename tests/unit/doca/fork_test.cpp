// Children of a program with devices: every call returns, and says why.
#include <rte_ethdev.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

#include "doca_dma.h"
#include "doca_dpdk.h"
#include "two_devices.hpp"

namespace {
bool is_child = false;
}

/// LeakSanitizer asks this at the end of the process. In a child it would count what threads of the parent have.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off()
{
    return is_child ? 1 : 0;
}

namespace weftio::test {
namespace {

/// How a child ends that runs `body`; -1: a signal ended it, or it has not ended in time.
int in_child(const std::function<int()>& body)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = 0;
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         waitpid(child, &status, WNOHANG) == 0;) {
        if (std::chrono::steady_clock::now() > end)
            kill(child, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class DocaFork : public DocaDevices {};

TEST_F(DocaFork, LeavesAChildAnErrorForEveryCallAndTheParentItsQueues)
{
    receiving in;
    sending out;
    in.make_queue(gpu, second);
    receiving::init_flow();
    in.start_port();
    in.add_udp_pipe(true);
    out.make_queue(gpu, first);
    out.start();
    auto* receive_ctx = doca_eth_rxq_as_doca_ctx(in.queue);
    DOCA_OK(doca_dpdk_port_probe(second, ""));
    std::uint16_t id = 0;
    DOCA_OK(doca_dpdk_get_first_port_id(second, &id));
    const std::function<doca_error_t()> calls[] = {
        [&] { return doca_ctx_stop(receive_ctx); },
        [&] { return doca_ctx_stop(doca_eth_txq_as_doca_ctx(out.queue)); },
        [&] { return doca_eth_rxq_destroy(in.queue); },
        [&] { return doca_flow_port_stop(in.port); },
        [&] { return doca_mmap_stop(in.memory.mmap); },
        [&] { return doca_buf_arr_destroy(out.array); },
        [&] { return doca_gpu_mem_free(gpu, in.memory.gpu_memory); },
        [&] { return doca_dev_close(second); },
        [&] { return doca_gpu_destroy(gpu); },
        [&] { return doca_gpu_create("cpu", &gpu); },
    };
    for (const auto& each : calls)
        EXPECT_EQ(in_child([&] { return static_cast<int>(each()); }), DOCA_ERROR_BAD_STATE) << &each - calls;
    EXPECT_EQ(in_child([&] { return rte_eth_dev_stop(id) == -EIO && rte_eth_dev_close(id) == -EIO ? 5 : 6; }), 5);
    EXPECT_EQ(in_child([] {
                  doca_flow_destroy();
                  return 5;
              }),
              5);
    EXPECT_EQ(in_child([]() -> int {
                  is_child = true;
                  std::exit(5);
              }),
              5);
    out.end();
    in.end();
    doca_flow_destroy();
}

} // namespace
} // namespace weftio::test
