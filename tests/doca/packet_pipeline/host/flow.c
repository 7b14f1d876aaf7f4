/* Which packets go to kernels, and which to the CPU. */
#include <arpa/inet.h>
#include <doca_log.h>

#include "pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::FLOW);

#define PROTOCOL_ICMP 1
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PRIORITY_UDP 0
#define PRIORITY_TCP_CPU 1
#define PRIORITY_OTHERS 3

static doca_error_t init_flow(void)
{
    struct doca_flow_cfg* settings;
    doca_error_t result = doca_flow_cfg_create(&settings), last;

    if (result != DOCA_SUCCESS)
        return result;
    result = doca_flow_cfg_set_pipe_queues(settings, 1);
    if (result == DOCA_SUCCESS)
        result = doca_flow_cfg_set_mode_args(settings, "vnf,hws,isolated");
    if (result == DOCA_SUCCESS)
        result = doca_flow_cfg_set_nr_counters(settings, 524228);
    if (result == DOCA_SUCCESS)
        result = doca_flow_init(settings);
    last = doca_flow_cfg_destroy(settings);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}

/* The flow port is named by the number of the DPDK port. */
doca_error_t start_flow(struct pipeline* all)
{
    struct doca_flow_port_cfg* settings;
    doca_error_t result = init_flow(), last;

    if (result == DOCA_SUCCESS)
        result = doca_flow_port_cfg_create(&settings);
    if (result == DOCA_SUCCESS) {
        result = doca_flow_port_cfg_set_devargs(settings, "0");
        if (result == DOCA_SUCCESS)
            result = doca_flow_port_start(settings, &all->port);
        last = doca_flow_port_cfg_destroy(settings);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No flow port: %s", doca_error_get_descr(result));
    return result;
}

/* A pipe to queues that drops what no entry matches. */
static doca_error_t make_pipe(struct pipeline* all, const char* name, const struct doca_flow_match* match,
                              const struct doca_flow_fwd* to_queues, struct doca_flow_pipe** pipe)
{
    const struct doca_flow_fwd drop = {.type = DOCA_FLOW_FWD_DROP};
    const struct doca_flow_monitor count = {.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED};
    struct doca_flow_pipe_cfg* settings;
    doca_error_t result = doca_flow_pipe_cfg_create(&settings, all->port);

    if (result != DOCA_SUCCESS)
        return result;
    result = doca_flow_pipe_cfg_set_name(settings, name);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_type(settings, DOCA_FLOW_PIPE_BASIC);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_is_root(settings, false);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_match(settings, match, NULL);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_monitor(settings, &count);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_create(settings, to_queues, &drop, pipe);
    doca_flow_pipe_cfg_destroy(settings);
    return result;
}

static doca_error_t add_entry(struct pipeline* all, struct doca_flow_pipe* pipe, const struct doca_flow_match* match,
                              struct doca_flow_pipe_entry** entry)
{
    doca_error_t result = doca_flow_pipe_add_entry(0, pipe, match, NULL, NULL, NULL, DOCA_FLOW_NO_WAIT, NULL, entry);

    if (result == DOCA_SUCCESS)
        result = doca_flow_entries_process(all->port, 0, 0, 0);
    return result;
}

/* A pipe of one entry, to queues of kernels, or to those of the CPU when `from` is NULL. */
static doca_error_t make_pipe_of_all(struct pipeline* all, const char* name, uint32_t l4_type, uint32_t rss_flags,
                                     const struct receive_queue* from, uint32_t queues, struct doca_flow_pipe** pipe)
{
    const struct doca_flow_match match = {
        .parser_meta = {.outer_l3_type = DOCA_FLOW_L3_META_IPV4, .outer_l4_type = l4_type}};
    uint16_t numbers[MAX_QUEUES];
    struct doca_flow_fwd to_queues = {.type = DOCA_FLOW_FWD_RSS, .rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED};
    struct doca_flow_pipe_entry* entry;
    uint32_t i;
    doca_error_t result = DOCA_SUCCESS;

    for (i = 0; i < queues && result == DOCA_SUCCESS; ++i) {
        numbers[i] = (uint16_t)i;
        if (from)
            result = doca_eth_rxq_get_flow_queue_id(from[i].rxq, &numbers[i]);
    }
    to_queues.rss.outer_flags = rss_flags;
    to_queues.rss.queues_array = numbers;
    to_queues.rss.nr_queues = (int)queues;
    if (result == DOCA_SUCCESS)
        result = make_pipe(all, name, &match, &to_queues, pipe);
    if (result == DOCA_SUCCESS)
        result = add_entry(all, *pipe, &match, &entry);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("Pipe %s is not made: %s", name, doca_error_get_descr(result));
    return result;
}

/* A pipe of an entry for each connection, which tcp_cpu.c adds. */
static doca_error_t make_pipe_of_connections(struct pipeline* all)
{
    const struct doca_flow_match given_by_entries = {
        .outer = {.l3_type = DOCA_FLOW_L3_TYPE_IP4,
                  .l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP,
                  .ip4 = {.src_ip = 0xffffffff, .dst_ip = 0xffffffff},
                  .tcp = {.l4_port = {.src_port = 0xffff, .dst_port = 0xffff}}}};
    uint16_t numbers[MAX_QUEUES];
    struct doca_flow_fwd to_queues = {.type = DOCA_FLOW_FWD_RSS, .rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED};
    uint32_t i;
    doca_error_t result = DOCA_SUCCESS;

    for (i = 0; i < all->settings.queues && result == DOCA_SUCCESS; ++i)
        result = doca_eth_rxq_get_flow_queue_id(all->tcp[i].rxq, &numbers[i]);
    to_queues.rss.outer_flags = DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_TCP;
    to_queues.rss.queues_array = numbers;
    to_queues.rss.nr_queues = (int)all->settings.queues;
    if (result == DOCA_SUCCESS)
        result = make_pipe(all, "TCP_CONNECTIONS", &given_by_entries, &to_queues, &all->tcp_pipe);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("The pipe of connections is not made: %s", doca_error_get_descr(result));
    return result;
}

doca_error_t add_connection(struct pipeline* all, const struct doca_flow_match* connection,
                            struct doca_flow_pipe_entry** entry)
{
    return add_entry(all, all->tcp_pipe, connection, entry);
}

doca_error_t remove_connection(struct pipeline* all, struct doca_flow_pipe_entry* entry)
{
    doca_error_t result = doca_flow_pipe_remove_entry(0, DOCA_FLOW_NO_WAIT, entry);

    if (result == DOCA_SUCCESS)
        result = doca_flow_entries_process(all->port, 0, 0, 0);
    return result;
}

static doca_error_t add_to_root(struct pipeline* all, uint32_t priority, uint8_t protocol, uint8_t tcp_flags,
                                struct doca_flow_pipe* next)
{
    struct doca_flow_match match = {.outer = {.eth = {.type = htons(DOCA_FLOW_ETHER_TYPE_IPV4)},
                                              .l3_type = DOCA_FLOW_L3_TYPE_IP4,
                                              .ip4 = {.next_proto = protocol}}};
    const struct doca_flow_fwd to_pipe = {.type = DOCA_FLOW_FWD_PIPE, .next_pipe = next};
    struct doca_flow_pipe_entry* entry;

    if (tcp_flags) {
        match.outer.l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP;
        match.outer.tcp.flags = tcp_flags;
    }
    return doca_flow_pipe_control_add_entry(0, priority, all->root_pipe, &match, NULL, NULL, NULL, NULL, NULL, NULL,
                                            &to_pipe, NULL, &entry);
}

static doca_error_t make_root_pipe(struct pipeline* all)
{
    const uint8_t flags[] = {DOCA_FLOW_MATCH_TCP_FLAG_SYN, DOCA_FLOW_MATCH_TCP_FLAG_RST, DOCA_FLOW_MATCH_TCP_FLAG_FIN};
    struct doca_flow_pipe_cfg* settings;
    unsigned i;
    doca_error_t result = doca_flow_pipe_cfg_create(&settings, all->port);

    if (result != DOCA_SUCCESS)
        return result;
    result = doca_flow_pipe_cfg_set_name(settings, "ROOT");
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_type(settings, DOCA_FLOW_PIPE_CONTROL);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_is_root(settings, true);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_create(settings, NULL, NULL, &all->root_pipe);
    doca_flow_pipe_cfg_destroy(settings);
    if (result == DOCA_SUCCESS)
        result = add_to_root(all, PRIORITY_UDP, PROTOCOL_UDP, 0, all->udp_pipe);
    for (i = 0; i < sizeof flags && result == DOCA_SUCCESS; ++i)
        result = add_to_root(all, PRIORITY_TCP_CPU, PROTOCOL_TCP, flags[i], all->cpu_pipe);
    if (result == DOCA_SUCCESS)
        result = add_to_root(all, PRIORITY_OTHERS, PROTOCOL_TCP, 0, all->tcp_pipe);
    if (result == DOCA_SUCCESS)
        result = add_to_root(all, PRIORITY_OTHERS, PROTOCOL_ICMP, 0, all->icmp_pipe);
    if (result == DOCA_SUCCESS)
        result = doca_flow_entries_process(all->port, 0, 0, 0);
    return result;
}

doca_error_t make_pipes(struct pipeline* all)
{
    const uint32_t queues = all->settings.queues, tcp_rss = DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_TCP;
    doca_error_t result = make_pipe_of_all(all, "UDP", DOCA_FLOW_L4_META_UDP, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP,
                                           all->udp, queues, &all->udp_pipe);

    if (result == DOCA_SUCCESS)
        result = all->settings.is_server
                     ? make_pipe_of_connections(all)
                     : make_pipe_of_all(all, "TCP", DOCA_FLOW_L4_META_TCP, tcp_rss, all->tcp, queues, &all->tcp_pipe);
    if (result == DOCA_SUCCESS)
        result = make_pipe_of_all(all, "TCP_CPU", DOCA_FLOW_L4_META_TCP, tcp_rss, NULL, queues, &all->cpu_pipe);
    if (result == DOCA_SUCCESS)
        result =
            make_pipe_of_all(all, "ICMP", DOCA_FLOW_L4_META_ICMP, DOCA_FLOW_RSS_IPV4, &all->icmp, 1, &all->icmp_pipe);
    if (result == DOCA_SUCCESS)
        result = make_root_pipe(all);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No pipes: %s", doca_error_get_descr(result));
    return result;
}
