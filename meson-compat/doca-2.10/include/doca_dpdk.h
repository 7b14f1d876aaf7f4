/** Devices as DPDK ports. */
#pragma once

#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Gives a device the next number of a DPDK port, unless it has one. After rte_eth_dev_close() of its port it has none.
 *
 * @param devargs  accepted, and without effect
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, or no such device
 */
doca_error_t doca_dpdk_port_probe(struct doca_dev *dev, const char *devargs);
/**
 * The number.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE; DOCA_ERROR_NOT_FOUND the device was not probed, or its
 *         port was closed since
 */
doca_error_t doca_dpdk_get_first_port_id(const struct doca_dev *dev, uint16_t *port_id);

#ifdef __cplusplus
}
#endif
