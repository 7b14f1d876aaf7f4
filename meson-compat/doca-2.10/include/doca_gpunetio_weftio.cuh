/** What Weftio offers beside the API of 2.10, inside kernels. */
#pragma once

#include "doca_gpunetio_dev_eth_rxq.cuh"

/**
 * Length, checksums and time of arrival of packet `index`, of which 2.10 has only the address. Any thread; never
 * blocks.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_NOT_FOUND the packet was not received, or its slot was reused;
 *         DOCA_ERROR_INVALID_VALUE `rxq` is NULL
 */
WEFTIO_FN doca_error_t weftio_doca_eth_rxq_packet(struct doca_gpu_eth_rxq *rxq, weftio_u64 index,
                                                  struct weftio_dev_packet *packet)
{
    if (!rxq)
        return DOCA_ERROR_INVALID_VALUE;
    return weftio_doca_error(weftio_dev_eth_rxq_packet(rxq->queue, (weftio_u32)index, packet));
}
