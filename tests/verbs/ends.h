/*
 * Shared by programs of tests/scripts/run_*.sh, which run under weftio-run with the installed libibverbs and libmlx5.
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

enum { memory_bytes = 65536, all_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static int failed_checks;

#define CHECK(what, expected, seen) check(__LINE__, what, (long long)(expected), (long long)(seen))
static inline void check(int line, const char* what, long long expected, long long seen)
{
    if (expected == seen)
        return;
    printf("FAILED: line %d: %s: expected %lld, got %lld\n", line, what, expected, seen);
    ++failed_checks;
}

/* Ends the program if a precondition does not hold. */
#define NEED(value) need(__LINE__, #value, (value) != 0)
static inline void need(int line, const char* what, int there)
{
    if (there)
        return;
    printf("FAILED: line %d: %s: %s\n", line, what, strerror(errno));
    exit(1);
}

static inline double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Timeout for events that must happen, in seconds. */
static inline double patience(void)
{
    const char* factor = getenv("WEFTIO_PATIENCE");
    return 30 * (factor ? atof(factor) : 1);
}

struct end {
    struct ibv_cq* cq;
    struct ibv_qp* qp;
};

/* One instance for the program; with ENDS_OF defined as __thread, one for each thread. */
#ifndef ENDS_OF
#define ENDS_OF
#endif
static ENDS_OF struct ibv_context* context;
static ENDS_OF struct ibv_pd* pd;
static ENDS_OF struct ibv_mr* mr;
static ENDS_OF char memory[memory_bytes] __attribute__((aligned(4096)));
static ENDS_OF union ibv_gid gid;

static inline void open_device(void)
{
    struct ibv_device** all = ibv_get_device_list(NULL);
    NEED(all && all[0]);
    context = ibv_open_device(all[0]);
    NEED(context);
    ibv_free_device_list(all);
    NEED(pd = ibv_alloc_pd(context));
    NEED(mr = ibv_reg_mr(pd, memory, sizeof memory, all_rights));
    NEED(ibv_query_gid(context, 1, 0, &gid) == 0);
}

static inline void close_device(void)
{
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(mr));
    CHECK("ibv_dealloc_pd", 0, ibv_dealloc_pd(pd));
    CHECK("ibv_close_device", 0, ibv_close_device(context));
}

static inline struct ibv_qp* make_qp(struct ibv_cq* cq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr wanted = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
    };
    struct ibv_qp* made = ibv_create_qp(pd, &wanted);
    NEED(made);
    return made;
}

static inline void make_end(struct end* to, int entries, enum ibv_qp_type type)
{
    NEED(to->cq = ibv_create_cq(context, entries, NULL, NULL, 0));
    to->qp = make_qp(to->cq, type);
}

static inline void end_end(struct end* of)
{
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(of->qp));
    CHECK("ibv_destroy_cq", 0, ibv_destroy_cq(of->cq));
}

static inline int to_state(struct ibv_qp* qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr to = {.qp_state = state};
    return ibv_modify_qp(qp, &to, IBV_QP_STATE);
}

static inline void to_init(struct ibv_qp* qp, unsigned rights)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = rights};
    CHECK("RESET to INIT", 0,
          ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

enum {
    rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
    rtr_mask_rc = rtr_mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN,
    rts_mask_rc = rts_mask | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
};

static inline struct ibv_qp_attr rtr_to(uint32_t peer)
{
    struct ibv_qp_attr to = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .rq_psn = 77,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 9, .traffic_class = 32}},
    };
    return to;
}

/* Of later connections; 7: without end. */
static ENDS_OF uint8_t rnr_retry = 6;

static inline struct ibv_qp_attr rts_values(void)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_RTS,
                             .sq_psn = 77,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = rnr_retry,
                             .max_rd_atomic = 4};
    return to;
}

static inline void to_rtr(struct ibv_qp* qp, struct ibv_qp* peer)
{
    struct ibv_qp_attr to = rtr_to(peer->qp_num);
    CHECK("INIT to RTR", 0, ibv_modify_qp(qp, &to, qp->qp_type == IBV_QPT_RC ? rtr_mask_rc : rtr_mask));
}

static inline void to_rts(struct ibv_qp* qp)
{
    struct ibv_qp_attr to = rts_values();
    CHECK("RTR to RTS", 0, ibv_modify_qp(qp, &to, qp->qp_type == IBV_QPT_RC ? rts_mask_rc : rts_mask));
}

static inline void connect_ends(struct ibv_qp* a, struct ibv_qp* b, unsigned rights_of_a_at_b)
{
    to_init(a, all_rights);
    to_init(b, rights_of_a_at_b);
    to_rtr(a, b);
    to_rtr(b, a);
    to_rts(a);
    to_rts(b);
}

static inline int post(struct ibv_qp* qp, enum ibv_wr_opcode opcode, uint32_t bytes, uint32_t rkey, uint64_t wr_id)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = bytes, .lkey = mr->lkey};
    struct ibv_send_wr entry = {.wr_id = wr_id, .sg_list = &piece, .num_sge = 1, .opcode = opcode}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    entry.wr.rdma.remote_addr = (uintptr_t)memory + memory_bytes / 2;
    entry.wr.rdma.rkey = rkey;
    return ibv_post_send(qp, &entry, &bad);
}

static inline int post_receive(struct ibv_qp* qp, uint32_t bytes, uint64_t wr_id)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory + memory_bytes / 2, .length = bytes, .lkey = mr->lkey};
    struct ibv_recv_wr entry = {.wr_id = wr_id, .sg_list = &piece, .num_sge = 1}, *bad;
    return ibv_post_recv(qp, &entry, &bad);
}

/* The next completion; ends the program if there is none within the timeout. */
static inline struct ibv_wc next_completion(struct ibv_cq* cq)
{
    struct ibv_wc got = {0};
    const double end = seconds() + patience();
    int count;
    while ((count = ibv_poll_cq(cq, 1, &got)) == 0 && seconds() < end)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    errno = ETIMEDOUT;
    NEED(count == 1);
    return got;
}

static inline enum ibv_qp_state state_of(struct ibv_qp* qp)
{
    struct ibv_qp_attr now;
    struct ibv_qp_init_attr made;
    CHECK("ibv_query_qp", 0, ibv_query_qp(qp, &now, IBV_QP_STATE, &made));
    return now.qp_state;
}

static inline int an_event_waits(int milliseconds)
{
    struct pollfd look = {.fd = context->async_fd, .events = POLLIN};
    return poll(&look, 1, milliseconds) == 1;
}

/* The next event must be this one. */
static inline void expect_event(enum ibv_event_type type, void* element)
{
    struct ibv_async_event got;
    errno = ETIMEDOUT;
    NEED(an_event_waits((int)(patience() * 1000)));
    NEED(ibv_get_async_event(context, &got) == 0);
    if (got.event_type != type)
        printf("FAILED: expected %s, got %s\n", ibv_event_type_str(type), ibv_event_type_str(got.event_type));
    CHECK("event", type, got.event_type);
    if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
        CHECK("port", (intptr_t)element, got.element.port_num);
    else
        CHECK("element", (intptr_t)element, (intptr_t)got.element.qp); /* of a union of pointers */
    ibv_ack_async_event(&got);
}

static inline void expect_silence(const char* when)
{
    CHECK(when, 0, an_event_waits(100));
}
