/* A kernel calls nothing of the host, and knows where its queues lie. */
#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

WEFTIO_KERNEL void misuse(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* in, WEFTIO_GLOBAL struct weftio_dev_eth_txq* out,
                          const WEFTIO_GLOBAL struct weftio_dev_eth_rxq* fixed)
{
    weftio_u32 count = 0, first = 0;
    struct weftio_dev_eth_rxq mine = *in;

    WEFTIO_GLOBAL void* more = malloc(64);   // refused: malloc
    puts("hello");                           // refused: puts
    weftio_dev_eth_rxq_release(&mine, 0, 1); // refused: address space
    weftio_dev_eth_txq_push(in);             // refused: incompatible
    weftio_dev_eth_rxq_release(fixed, 0, 1); // refused: discards qualifiers
    weftio_dev_eth_rxq_receive_thread(in, 1, 0, &count, &first);
    weftio_dev_eth_txq_push(out);
}
