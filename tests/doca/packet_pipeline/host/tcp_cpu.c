/* Begins and ends of TCP connections: the CPU answers SYN and FIN by DPDK, from the packet that asks. */
#include <doca_log.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>

#include "pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::TCP);

#define BURST 32
#define MAX_CONNECTIONS 256
#define FIRST_NUMBER 1000 /* sequence number of each SYN+ACK */
#define HEADERS_SIZE (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_tcp_hdr))

struct connection {
    struct doca_flow_match match;
    struct doca_flow_pipe_entry* entry; /* NULL: a free place */
};

static struct connection connections[MAX_CONNECTIONS]; /* of the one lcore */

static struct doca_flow_match match_of(const struct rte_ipv4_hdr* ip, const struct rte_tcp_hdr* tcp)
{
    struct doca_flow_match match = {
        .outer = {.l3_type = DOCA_FLOW_L3_TYPE_IP4,
                  .l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP,
                  .ip4 = {.src_ip = ip->src_addr, .dst_ip = ip->dst_addr},
                  .tcp = {.l4_port = {.src_port = tcp->src_port, .dst_port = tcp->dst_port}}}};

    return match;
}

static bool is_same(const struct doca_flow_match* one, const struct doca_flow_match* other)
{
    return one->outer.ip4.src_ip == other->outer.ip4.src_ip && one->outer.ip4.dst_ip == other->outer.ip4.dst_ip &&
           one->outer.tcp.l4_port.src_port == other->outer.tcp.l4_port.src_port &&
           one->outer.tcp.l4_port.dst_port == other->outer.tcp.l4_port.dst_port;
}

/* The place of a connection, or a free one; NULL when there is none. */
static struct connection* find_connection(const struct doca_flow_match* match)
{
    struct connection* free_place = NULL;
    unsigned i;

    for (i = 0; i < MAX_CONNECTIONS; ++i) {
        if (connections[i].entry == NULL)
            free_place = &connections[i];
        else if (is_same(&connections[i].match, match))
            return &connections[i];
    }
    return free_place;
}

/* Has packets of the connection go to a kernel, or no longer. False: there is no room for it. */
static bool note_connection(struct pipeline* all, const struct rte_ipv4_hdr* ip, const struct rte_tcp_hdr* tcp)
{
    const struct doca_flow_match match = match_of(ip, tcp);
    struct connection* connection = find_connection(&match);
    doca_error_t result = DOCA_SUCCESS;

    if (connection == NULL)
        return false;
    if (tcp->syn && connection->entry == NULL) {
        result = add_connection(all, &match, &connection->entry);
        connection->match = match;
        if (result != DOCA_SUCCESS)
            connection->entry = NULL;
    } else if (!tcp->syn && connection->entry != NULL) {
        result = remove_connection(all, connection->entry);
        connection->entry = NULL;
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("The pipe of connections is not changed: %s", doca_error_get_descr(result));
    return result == DOCA_SUCCESS;
}

/* Turns the packet round: checksums are computed by the port. */
static void make_answer(struct rte_mbuf* packet, struct rte_ipv4_hdr* ip, struct rte_tcp_hdr* tcp)
{
    struct rte_ether_hdr* ether = rte_pktmbuf_mtod(packet, struct rte_ether_hdr*);
    const struct rte_ether_addr mac = ether->dst_addr;
    const rte_be32_t address = ip->dst_addr;
    const rte_be16_t port = tcp->dst_port;
    const uint32_t payload = rte_be_to_cpu_16(ip->total_length) - sizeof *ip - tcp->dt_off * 4u;
    const uint32_t next = rte_be_to_cpu_32(tcp->sent_seq) + payload + tcp->syn + tcp->fin;

    ether->dst_addr = ether->src_addr;
    ether->src_addr = mac;
    ip->dst_addr = ip->src_addr;
    ip->src_addr = address;
    ip->total_length = rte_cpu_to_be_16(sizeof *ip + sizeof *tcp);
    ip->time_to_live = 64;
    ip->hdr_checksum = 0;
    tcp->dst_port = tcp->src_port;
    tcp->src_port = port;
    tcp->sent_seq = tcp->syn ? rte_cpu_to_be_32(FIRST_NUMBER) : tcp->recv_ack;
    tcp->recv_ack = rte_cpu_to_be_32(next);
    tcp->tcp_flags = (tcp->syn ? RTE_TCP_SYN_FLAG : RTE_TCP_FIN_FLAG) | RTE_TCP_ACK_FLAG;
    tcp->data_off = 0;
    tcp->dt_off = sizeof *tcp / 4;
    tcp->rx_win = rte_cpu_to_be_16(65535);
    tcp->tcp_urp = 0;
    rte_pktmbuf_trim(packet, (uint16_t)(packet->pkt_len - HEADERS_SIZE));
    packet->l2_len = sizeof *ether;
    packet->l3_len = sizeof *ip;
    packet->l4_len = sizeof *tcp;
    packet->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM;
    tcp->cksum = rte_ipv4_phdr_cksum(ip, packet->ol_flags);
}

/* Whether the packet has become an answer. */
static bool answers(struct pipeline* all, struct rte_mbuf* packet)
{
    struct rte_ipv4_hdr* ip = rte_pktmbuf_mtod_offset(packet, struct rte_ipv4_hdr*, sizeof(struct rte_ether_hdr));
    struct rte_tcp_hdr* tcp = (struct rte_tcp_hdr*)(ip + 1);

    if (packet->data_len < HEADERS_SIZE || rte_ipv4_hdr_len(ip) != sizeof *ip ||
        rte_be_to_cpu_16(ip->total_length) < sizeof *ip + tcp->dt_off * 4u)
        return false;
    if (all->settings.is_server && !note_connection(all, ip, tcp))
        return false;
    if (tcp->rst || (tcp->syn && tcp->ack))
        return false;
    if (tcp->syn)
        __atomic_add_fetch(&all->accepted, 1, __ATOMIC_RELAXED);
    make_answer(packet, ip, tcp);
    return true;
}

int serve_tcp(void* argument)
{
    struct pipeline* all = argument;
    struct rte_mbuf* packets[BURST];
    uint16_t queue, count, i;

    while (!is_stopped)
        for (queue = 0; queue < all->settings.queues; ++queue) {
            count = rte_eth_rx_burst(DPDK_PORT, queue, packets, BURST);
            for (i = 0; i < count; ++i)
                if (!answers(all, packets[i]) || rte_eth_tx_burst(DPDK_PORT, queue, &packets[i], 1) != 1)
                    rte_pktmbuf_free(packets[i]);
        }
    return 0;
}
