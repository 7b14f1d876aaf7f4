/* A kernel calls nothing of the host, and the host nothing of a kernel. */
#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

int of_the_host(int);

WEFTIO_KERNEL void misuse(struct weftio_dev_eth_rxq* in, struct weftio_dev_eth_txq* out,
                          const struct weftio_dev_eth_rxq* fixed)
{
    of_the_host(1);                          // refused: __host__ function
    weftio_dev_eth_txq_push(in);             // refused: weftio_dev_eth_txq
    weftio_dev_eth_rxq_release(fixed, 0, 1); // refused: const
    weftio_dev_eth_rxq_release(in, 0, 1);
    weftio_dev_eth_txq_push(out);
}

void host(struct weftio_dev_eth_txq* out)
{
    weftio_dev_eth_txq_push(out); // refused: __device__ function
}
