/* The program's own DPDK port: as many queues of the CPU as there are of TCP at the GPU. */
#include <doca_dpdk.h>
#include <doca_log.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mbuf.h>

#include "pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::DPDK);

#define DESCRIPTORS 2048
#define PORT_MTU 2048
#define MBUFS 8191
#define MBUF_CACHE 256

doca_error_t start_dpdk(void)
{
    char program[] = "", allow[] = "-a", none[] = "00:00.0";
    char* arguments[] = {program, allow, none};

    if (rte_eal_init(3, arguments) < 0) {
        DOCA_LOG_ERR("DPDK does not start");
        return DOCA_ERROR_DRIVER;
    }
    return DOCA_SUCCESS;
}

static int configure(struct pipeline* all)
{
    struct rte_eth_conf settings = {.rxmode = {.mtu = PORT_MTU},
                                    .txmode = {.offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
                                                           RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
                                                           RTE_ETH_TX_OFFLOAD_TCP_CKSUM}};
    const uint16_t queues = (uint16_t)all->settings.queues;
    struct rte_eth_dev_info info;
    struct rte_eth_txconf send;
    struct rte_flow_error error;
    uint16_t queue;
    int result = rte_eth_dev_info_get(DPDK_PORT, &info);

    if (result == 0)
        result = rte_eth_dev_configure(DPDK_PORT, queues, queues, &settings);
    if (result != 0)
        return result;
    send = info.default_txconf;
    send.offloads = settings.txmode.offloads;
    for (queue = 0; queue < queues && result == 0; ++queue) {
        result = rte_eth_rx_queue_setup(DPDK_PORT, queue, DESCRIPTORS, (unsigned)rte_eth_dev_socket_id(DPDK_PORT), NULL,
                                        all->pool);
        if (result == 0)
            result = rte_eth_tx_queue_setup(DPDK_PORT, queue, DESCRIPTORS, (unsigned)rte_eth_dev_socket_id(DPDK_PORT),
                                            &send);
    }
    if (result == 0)
        result = rte_flow_isolate(DPDK_PORT, 1, &error);
    if (result == 0)
        result = rte_eth_dev_start(DPDK_PORT);
    return result;
}

doca_error_t start_dpdk_port(struct pipeline* all)
{
    int error;
    doca_error_t result = doca_dpdk_port_probe(all->device, "dv_flow_en=2");

    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("The device is no DPDK port: %s", doca_error_get_descr(result));
        return result;
    }
    all->pool = rte_pktmbuf_pool_create("tcp_packets", MBUFS, MBUF_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (all->pool == NULL) {
        DOCA_LOG_ERR("No packets of DPDK");
        return DOCA_ERROR_NO_MEMORY;
    }
    error = configure(all);
    if (error != 0) {
        DOCA_LOG_ERR("DPDK port %d does not start: %s", DPDK_PORT, strerror(-error));
        return DOCA_ERROR_DRIVER;
    }
    all->is_dpdk_port_started = true;
    return DOCA_SUCCESS;
}

void stop_dpdk_port(struct pipeline* all)
{
    if (all->is_dpdk_port_started) {
        rte_eth_dev_stop(DPDK_PORT);
        rte_eth_dev_close(DPDK_PORT);
    }
    rte_mempool_free(all->pool);
}
