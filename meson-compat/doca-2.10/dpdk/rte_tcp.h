/**
 * DPDK's TCP header with what programs for DOCA 2.10 use besides: a bit-field for each flag and for the data offset,
 * and the kinds of TCP options. Neither is in DPDK's own rte_tcp.h, in place of which this one is found. It has all
 * members and macros of that (DPDK 22.11 to 25.11), and the same layout.
 */
#ifndef _RTE_TCP_H_
#define _RTE_TCP_H_

#include <stdint.h>

#include <rte_byteorder.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_tcp_hdr {
    rte_be16_t src_port;
    rte_be16_t dst_port;
    rte_be32_t sent_seq; /**< number of the first byte of data */
    rte_be32_t recv_ack; /**< number of the byte that is expected next */
    __extension__ union {
        uint8_t data_off; /**< bits 4 to 7: length of the header in words of 4 bytes */
        __extension__ struct {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            uint8_t rsrv : 4;
            uint8_t dt_off : 4;
#else
            uint8_t dt_off : 4;
            uint8_t rsrv : 4;
#endif
        };
    };
    __extension__ union {
        uint8_t tcp_flags; /**< RTE_TCP_*_FLAG */
        __extension__ struct {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            uint8_t fin : 1;
            uint8_t syn : 1;
            uint8_t rst : 1;
            uint8_t psh : 1;
            uint8_t ack : 1;
            uint8_t urg : 1;
            uint8_t ece : 1;
            uint8_t cwr : 1;
#else
            uint8_t cwr : 1;
            uint8_t ece : 1;
            uint8_t urg : 1;
            uint8_t ack : 1;
            uint8_t psh : 1;
            uint8_t rst : 1;
            uint8_t syn : 1;
            uint8_t fin : 1;
#endif
        };
    };
    rte_be16_t rx_win;
    rte_be16_t cksum;
    rte_be16_t tcp_urp; /**< urgent pointer */
} __attribute__((__packed__));

#define RTE_TCP_CWR_FLAG 0x80
#define RTE_TCP_ECE_FLAG 0x40
#define RTE_TCP_URG_FLAG 0x20
#define RTE_TCP_ACK_FLAG 0x10
#define RTE_TCP_PSH_FLAG 0x08
#define RTE_TCP_RST_FLAG 0x04
#define RTE_TCP_SYN_FLAG 0x02
#define RTE_TCP_FIN_FLAG 0x01

/** Kinds of TCP options, as IANA numbers them. */
enum rte_tcp_opt {
    RTE_TCP_OPT_END = 0,
    RTE_TCP_OPT_NOP = 1,
    RTE_TCP_OPT_MSS = 2,
    RTE_TCP_OPT_WND_SCALE = 3,
    RTE_TCP_OPT_SACK_PERMITTED = 4,
    RTE_TCP_OPT_SACK = 5,
    RTE_TCP_OPT_TIMESTAMP = 8
};

#ifdef __cplusplus
}
#endif

#endif
