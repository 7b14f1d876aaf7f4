/**
 * Flow: pipes that decide which queue a packet goes to.
 *
 * A packet begins at the root pipe. The entry of a pipe that matches it, of a control pipe the one with the lowest
 * priority number, says what happens: to queues, to another pipe, or drop. A packet that no entry matches follows the
 * pipe's miss, and is dropped where there is none. Weftio makes one list of rules of all pipes of a port, and replaces
 * it as a whole at each change, so that every packet meets the list before the change or the list after it.
 *
 * Fields of a match. In a pipe: 0 is not compared, a value of all ones is given by each entry, any other value is
 * compared. Numbers are in network byte order. A mask, if given, says which bits are compared: of addresses leading
 * ones, of TCP flags any, of other fields all or none. Without a mask, TCP flags match packets that have all of them.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range);
 * DOCA_ERROR_BAD_STATE the order of calls is wrong; DOCA_ERROR_NOT_SUPPORTED pipes cannot do it here: the log names it.
 */
#pragma once

#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_flow_cfg;
struct doca_flow_port;
struct doca_flow_port_cfg;
struct doca_flow_pipe;
struct doca_flow_pipe_cfg;
struct doca_flow_pipe_entry;
struct doca_flow_actions;         /**< not supported: NULL */
struct doca_flow_action_descs;    /**< not supported: NULL */
struct doca_flow_match_condition; /**< not supported: NULL */

enum doca_flow_l3_type { DOCA_FLOW_L3_TYPE_NONE = 0, DOCA_FLOW_L3_TYPE_IP4 = 1 };
enum doca_flow_l4_type_ext {
    DOCA_FLOW_L4_TYPE_EXT_NONE = 0,
    DOCA_FLOW_L4_TYPE_EXT_TCP = 1,
    DOCA_FLOW_L4_TYPE_EXT_UDP = 2,
    DOCA_FLOW_L4_TYPE_EXT_ICMP = 3
};
enum doca_flow_l3_meta { DOCA_FLOW_L3_META_NONE = 0, DOCA_FLOW_L3_META_IPV4 = 1 };
enum doca_flow_l4_meta {
    DOCA_FLOW_L4_META_NONE = 0,
    DOCA_FLOW_L4_META_TCP = 1,
    DOCA_FLOW_L4_META_UDP = 2,
    DOCA_FLOW_L4_META_ICMP = 3
};
enum doca_flow_fwd_type {
    DOCA_FLOW_FWD_NONE = 0,
    DOCA_FLOW_FWD_RSS = 1,
    DOCA_FLOW_FWD_PORT = 2, /**< not supported */
    DOCA_FLOW_FWD_PIPE = 3,
    DOCA_FLOW_FWD_DROP = 4
};
enum doca_flow_resource_type {
    DOCA_FLOW_RESOURCE_TYPE_NONE = 0,
    DOCA_FLOW_RESOURCE_TYPE_SHARED = 1, /**< not supported */
    DOCA_FLOW_RESOURCE_TYPE_NON_SHARED = 2
};
enum doca_flow_pipe_type { DOCA_FLOW_PIPE_BASIC = 0, DOCA_FLOW_PIPE_CONTROL = 1 };

#define DOCA_FLOW_NO_WAIT 0
#define DOCA_FLOW_WAIT_FOR_BATCH 1
#define DOCA_FLOW_RSS_IPV4 (1 << 0)
#define DOCA_FLOW_RSS_IPV6 (1 << 1)
#define DOCA_FLOW_RSS_UDP (1 << 2)
#define DOCA_FLOW_RSS_TCP (1 << 3)
#define DOCA_FLOW_ETHER_TYPE_IPV4 0x0800
#define DOCA_FLOW_MATCH_TCP_FLAG_FIN (1 << 0)
#define DOCA_FLOW_MATCH_TCP_FLAG_SYN (1 << 1)
#define DOCA_FLOW_MATCH_TCP_FLAG_RST (1 << 2)
#define DOCA_FLOW_MATCH_TCP_FLAG_PSH (1 << 3)
#define DOCA_FLOW_MATCH_TCP_FLAG_ACK (1 << 4)
#define DOCA_FLOW_MATCH_TCP_FLAG_URG (1 << 5)

struct doca_flow_ports {
    uint16_t src_port;
    uint16_t dst_port;
};
struct doca_flow_match {
    struct {
        uint32_t outer_l3_type; /**< enum doca_flow_l3_meta */
        uint32_t outer_l4_type; /**< enum doca_flow_l4_meta */
    } parser_meta;
    struct {
        struct {
            uint16_t type;
        } eth;
        int l3_type;     /**< enum doca_flow_l3_type */
        int l4_type_ext; /**< enum doca_flow_l4_type_ext */
        struct {
            uint32_t src_ip;
            uint32_t dst_ip;
            uint8_t next_proto;
        } ip4;
        union {
            struct {
                struct doca_flow_ports l4_port;
            } udp;
            struct {
                struct doca_flow_ports l4_port;
                uint8_t flags; /**< DOCA_FLOW_MATCH_TCP_FLAG_* */
            } tcp;
        };
    } outer;
};

/** Where packets go. */
struct doca_flow_fwd {
    enum doca_flow_fwd_type type;
    enum doca_flow_resource_type rss_type;
    struct {
        uint32_t outer_flags;   /**< DOCA_FLOW_RSS_*; addresses, and ports where there are any, are always hashed */
        uint16_t *queues_array; /**< from doca_eth_rxq_get_flow_queue_id(), or numbers of rte_eth_rx_queue_setup() */
        int nr_queues;          /**< 1 to 128 */
    } rss;
    struct doca_flow_pipe *next_pipe;
};
/** Counters are kept for every entry. */
struct doca_flow_monitor {
    enum doca_flow_resource_type counter_type;
};

doca_error_t doca_flow_cfg_create(struct doca_flow_cfg **cfg);
doca_error_t doca_flow_cfg_destroy(struct doca_flow_cfg *cfg);
/** Number of threads that change pipes. Any thread may, whatever the number. */
doca_error_t doca_flow_cfg_set_pipe_queues(struct doca_flow_cfg *cfg, uint16_t queues);
/** "vnf,hws,isolated" and others: accepted, and without effect. */
doca_error_t doca_flow_cfg_set_mode_args(struct doca_flow_cfg *cfg, const char *mode_args);
/** Accepted, and without effect. */
doca_error_t doca_flow_cfg_set_nr_counters(struct doca_flow_cfg *cfg, uint32_t counters);

/** DOCA_ERROR_BAD_STATE: flow is initialized already. */
doca_error_t doca_flow_init(struct doca_flow_cfg *cfg);
/** Stops all ports. */
void doca_flow_destroy(void);

doca_error_t doca_flow_port_cfg_create(struct doca_flow_port_cfg **cfg);
doca_error_t doca_flow_port_cfg_destroy(struct doca_flow_port_cfg *cfg);
/** @param dev  a struct doca_dev* */
doca_error_t doca_flow_port_cfg_set_dev(struct doca_flow_port_cfg *cfg, void *dev);
/** @param devargs  the number of a DPDK port: the device that doca_dpdk_port_probe() was called for */
doca_error_t doca_flow_port_cfg_set_devargs(struct doca_flow_port_cfg *cfg, const char *devargs);
/** DOCA_ERROR_BAD_STATE: flow is not initialized, or no device is set; DOCA_ERROR_IN_USE the device has such a port. */
doca_error_t doca_flow_port_start(struct doca_flow_port_cfg *cfg, struct doca_flow_port **port);
/** Destroys the pipes of the port. */
doca_error_t doca_flow_port_stop(struct doca_flow_port *port);

doca_error_t doca_flow_pipe_cfg_create(struct doca_flow_pipe_cfg **cfg, struct doca_flow_port *port);
doca_error_t doca_flow_pipe_cfg_destroy(struct doca_flow_pipe_cfg *cfg);
doca_error_t doca_flow_pipe_cfg_set_name(struct doca_flow_pipe_cfg *cfg, const char *name);
doca_error_t doca_flow_pipe_cfg_set_type(struct doca_flow_pipe_cfg *cfg, enum doca_flow_pipe_type type);
doca_error_t doca_flow_pipe_cfg_set_is_root(struct doca_flow_pipe_cfg *cfg, bool is_root);
/** Either may be NULL. */
doca_error_t doca_flow_pipe_cfg_set_match(struct doca_flow_pipe_cfg *cfg, const struct doca_flow_match *match,
                                          const struct doca_flow_match *match_mask);
doca_error_t doca_flow_pipe_cfg_set_monitor(struct doca_flow_pipe_cfg *cfg, const struct doca_flow_monitor *monitor);

/**
 * Makes a pipe without entries.
 *
 * @param fwd       where its entries send packets that say nothing else; may be NULL
 * @param fwd_miss  where packets go that no entry matches; NULL: they are dropped
 * @return DOCA_ERROR_INVALID_VALUE, beside what all functions refuse: no queue of the device has a number in
 *         rss.queues_array
 */
doca_error_t doca_flow_pipe_create(const struct doca_flow_pipe_cfg *cfg, const struct doca_flow_fwd *fwd,
                                   const struct doca_flow_fwd *fwd_miss, struct doca_flow_pipe **pipe);
/**
 * Adds an entry to a basic pipe. `actions` NULL; `match`, `monitor` and `fwd` may be NULL. In force at the return. The
 * other entries stay as they are. DOCA_ERROR_INVALID_VALUE for `fwd` as doca_flow_pipe_create().
 */
doca_error_t doca_flow_pipe_add_entry(uint16_t pipe_queue, struct doca_flow_pipe *pipe,
                                      const struct doca_flow_match *match, const struct doca_flow_actions *actions,
                                      const struct doca_flow_monitor *monitor, const struct doca_flow_fwd *fwd,
                                      uint32_t flags, void *user_context, struct doca_flow_pipe_entry **entry);
/**
 * Adds an entry to a control pipe; of several that match, the lowest `priority` number decides. In force at the
 * return. DOCA_ERROR_INVALID_VALUE for `fwd` as doca_flow_pipe_create().
 */
doca_error_t doca_flow_pipe_control_add_entry(
    uint16_t pipe_queue, uint32_t priority, struct doca_flow_pipe *pipe, const struct doca_flow_match *match,
    const struct doca_flow_match *match_mask, const struct doca_flow_match_condition *condition,
    const struct doca_flow_actions *actions, const struct doca_flow_actions *actions_mask,
    const struct doca_flow_action_descs *action_descs, const struct doca_flow_monitor *monitor,
    const struct doca_flow_fwd *fwd, void *user_context, struct doca_flow_pipe_entry **entry);
/** Does nothing: entries are in force when they have been added. */
doca_error_t doca_flow_entries_process(struct doca_flow_port *port, uint16_t pipe_queue, uint64_t timeout_us,
                                       uint32_t max_entries);
doca_error_t doca_flow_pipe_remove_entry(uint16_t pipe_queue, uint32_t flags, struct doca_flow_pipe_entry *entry);
/** Destroys a pipe and its entries. Does nothing if its port was stopped. */
void doca_flow_pipe_destroy(struct doca_flow_pipe *pipe);

#ifdef __cplusplus
}
#endif
