// Functions of kernels want the handle of the right queue, and one that may be written where they write.
#include "weftio/weftio.hpp"

using namespace weftio;

void objects(eth_rxq& in, eth_txq& out, semaphore& items, buf_arr& frames)
{
    weftio_dev_eth_rxq_release(in, 0, 1);      // refused: weftio_dev_eth_rxq ?\*
    weftio_dev_eth_txq_push(out);              // refused: weftio_dev_eth_txq ?\*
    weftio_dev_semaphore_get_status(items, 0); // refused: weftio_dev_semaphore ?\*
    weftio_dev_buf_get(frames, 0);             // refused: weftio_dev_buf_arr ?\*
    weftio_dev_aborted(in);                    // refused: weftio_dev_control ?\*
    weftio_dev_eth_rxq_release(in.handle(), 0, 1);
    weftio_dev_eth_txq_push(out.handle());
}

void other_queues(eth_rxq& in, eth_txq& out, semaphore& items)
{
    weftio_dev_eth_rxq_release(out.handle(), 0, 1);   // refused: weftio_dev_eth_rxq ?\*
    weftio_dev_eth_txq_push(in.handle());             // refused: weftio_dev_eth_txq ?\*
    weftio_dev_eth_txq_commit_strong(items.handle()); // refused: weftio_dev_eth_txq ?\*
    weftio_dev_semaphore_get_status(in.handle(), 0);  // refused: weftio_dev_semaphore ?\*
    weftio_dev_aborted(in.handle());                  // refused: weftio_dev_control ?\*
    weftio_dev_aborted(in.control());
}

void unwritable(const weftio_dev_eth_rxq* in, const weftio_dev_eth_txq* out)
{
    weftio_dev_eth_rxq_release(in, 0, 1);   // refused: const
    weftio_dev_eth_txq_push(out);           // refused: const
    weftio_dev_eth_txq_commit_weak(out, 1); // refused: const
    weftio_dev_eth_rxq_slot(in, 0);
    weftio_dev_eth_txq_status(out);
}

void queue_pairs(rdma_queue& queue, dma_queue& copies, weftio_dev_remote peer, weftio_dev_buf buffer)
{
    weftio_dev_rdma_commit(queue);                                     // refused: weftio_dev_rdma ?\*
    weftio_dev_rdma_commit(copies.handle());                           // refused: weftio_dev_rdma ?\*
    weftio_dev_rdma_commit(queue.receives().handle());                 // refused: weftio_dev_rdma ?\*
    weftio_dev_rdma_recv_commit(queue.handle());                       // refused: weftio_dev_rdma_recv ?\*
    weftio_dev_rdma_write(queue.handle(), buffer, 0, buffer, 0, 8, 0); // refused: weftio_dev_remote
    weftio_dev_rdma_send(queue.handle(), peer, 0, 8, 0);               // refused: weftio_dev_buf
    weftio_dev_rdma_write(queue.handle(), peer, 0, buffer, 0, 8, 0);
    weftio_dev_rdma_commit(queue.handle());
    weftio_dev_rdma_recv_commit(queue.receives().handle());
}

void numbers(semaphore& items, running_kernel& kernel)
{
    items.set_status(0, 1);                          // refused: semaphore_status
    items.set_status(0, WEFTIO_DEV_SEMAPHORE_READY); // refused: semaphore_status
    kernel.wait_for(5);                              // refused: duration
    items.set_status(0, semaphore_status::ready);
    kernel.wait_for(std::chrono::seconds(5));
}
