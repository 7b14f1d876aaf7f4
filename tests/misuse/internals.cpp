// What public classes keep for the library is no member that users may call.
#include "weftio/weftio.hpp"

using namespace weftio;

void backends(const port& port, const device& device, const dma_engine& engine)
{
    (void)port.backend();           // refused: no member named
    (void)port.share();             // refused: no member named
    (void)port.backend_;            // refused: private
    (void)device.backend_;          // refused: private
    (void)device.make_copy_queue(); // refused: no member named
    (void)engine.backend_;          // refused: private
    (void)port.spec();
    (void)device.name();
}

void memories(const memory& bytes, const memory_region& region)
{
    (void)bytes.block_;   // refused: private
    (void)region.block(); // refused: no member named
    (void)bytes.bytes();
    (void)region.lkey();
}

void lifelines(const eth_rxq& in, const eth_txq& out, const rdma_queue& pair, const semaphore& items)
{
    (void)in.line();              // refused: no member named
    (void)out.reports();          // refused: no member named
    (void)pair.receives().line(); // refused: private
    (void)items.line();           // refused: no member named
    (void)in.control();
    (void)pair.receives().control();
}

void launches(const device& device, const kernel<weftio_dev_rdma*, weftio_dev_rdma_recv*>& kernel, rdma_queue& pair,
              progress_engine& events)
{
    static_assert(watchable<rdma_queue>); // refused: watchable
    running_kernel running = device.launch(kernel, {}, pair, pair.receives());
    events.attach(pair, {});
}
