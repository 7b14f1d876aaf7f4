#include "scenario.hpp"

#include <future>

#include "injection.hpp"
#include "kernels.h"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(send_and_receive, "unit/faults/kernels.h");

namespace weftio::test {

namespace {

constexpr std::uint32_t packets = 8;

/// One launch: eight packets each way, then the end.
void run_once(const scenario& scenario, const device& where, const eth_rxq& rx, const eth_txq& tx,
              const buf_arr& frames, memory& seen)
{
    auto* came = static_cast<std::uint32_t*>(seen.cpu_address());
    std::promise<void> reported;
    weftio_store_release_sys_u32(came, 0);
    auto kernel = where.launch(send_and_receive_kernel, {.blocks = 1, .lanes = scenario.lanes}, rx, tx, frames, packets,
                               static_cast<std::uint32_t*>(seen.device_address()), scenario.kernel_leaves ? 0u : 1u);
    const std::chrono::milliseconds period{scenario.kernel_leaves ? 20 : 100'000};
    kernel.watch({.period = period, .on_report = [&](const kernel_report&) { reported.set_value(); }});
    if (scenario.kernel_leaves) {
        EXPECT_EQ(reported.get_future().wait_for(patience), std::future_status::ready)
            << "nobody said that the kernel has ended";
    }
    EXPECT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(came) == packets || !kernel.alive(); }));
    kernel.stop();
    EXPECT_TRUE(kernel.wait_for(patience));
    EXPECT_TRUE(scenario.kernel_leaves || weftio_load_acquire_sys_u32(came) == packets)
        << "of 8 packets came " << *came;
}

} // namespace

void live(const scenario& scenario)
{
    device where = device::open(scenario.device);
    port port =
        port::open(scenario.port, {.mode = scenario.inline_mode ? engine_mode::inline_worker : engine_mode::thread});
    eth_rxq rx(port, where, {.packets = 64});
    eth_txq tx(port, where, {.entries = 64});
    buf_arr frames(port, where, {.count = packets, .buffer_bytes = 64});
    memory seen = where.allocate(64, memory_kind::cpu_device);
    const std::vector<flow> rules =
        flow::install(port, {{.action = flow_action::to(rx)}, {.action = flow_action::drop(), .priority = 1}});
    progress_engine progress;
    progress.attach(tx, {});
    for (int life = 0; life < scenario.lives; ++life) {
        run_once(scenario, where, rx, tx, frames, seen);
        progress.progress();
        port.counters();
        rx.reset();
        tx.reset();
    }
    eth_txq_counters sent = tx.counters();
    EXPECT_EQ(sent.enqueued, sent.sent + sent.waited + sent.failed + sent.flushed);
}

} // namespace weftio::test
