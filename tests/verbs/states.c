/* All ways between states of a queue pair, what each must and may set, and what ibv_query_qp() answers then, for
 * tests/scripts/run_states.sh. The expectations are those of Linux (ib_modify_qp_is_ok), written down once more. */
#include "ends.h"

enum {
    init_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    every_bit = (IBV_QP_DEST_QPN << 1) - 1,
    /* The NIC has no other paths: a program that asks for one hears so. */
    other_path = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
};

static struct end a, b;

static const char* const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

/* Values that are right for every attribute. */
static struct ibv_qp_attr right_values(enum ibv_qp_state now, enum ibv_qp_state to)
{
    struct ibv_qp_attr with = rtr_to(b.qp->qp_num);
    with.qp_state = to;
    with.cur_qp_state = now;
    with.port_num = 1;
    with.qp_access_flags = all_rights;
    with.sq_psn = 77;
    with.timeout = 14;
    with.retry_cnt = 7;
    with.rnr_retry = 6;
    with.max_rd_atomic = 4;
    return with;
}

/* From RESET to a state by the shortest way. */
static void walk_to(enum ibv_qp_state state)
{
    CHECK("to RESET", 0, to_state(a.qp, IBV_QPS_RESET));
    if (state == IBV_QPS_RESET)
        return;
    to_init(a.qp, all_rights);
    if (state == IBV_QPS_ERR)
        CHECK("to ERR", 0, to_state(a.qp, IBV_QPS_ERR));
    if (state == IBV_QPS_INIT || state == IBV_QPS_ERR)
        return;
    to_rtr(a.qp, b.qp);
    if (state == IBV_QPS_RTR)
        return;
    to_rts(a.qp);
    if (state == IBV_QPS_SQD)
        CHECK("to SQD", 0, to_state(a.qp, IBV_QPS_SQD));
}

struct way {
    int exists;
    int must, may;
};

static struct way way_of(int rc, enum ibv_qp_state from, enum ibv_qp_state to)
{
    const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int rtr_rc = rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
    const int rts_rc = rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
    const int again = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | (rc ? IBV_QP_MIN_RNR_TIMER : 0);

    if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
        return (struct way){1, 0, 0};
    if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
        return (struct way){1, init_mask, 0};
    if (from == IBV_QPS_INIT && to == IBV_QPS_INIT)
        return (struct way){1, 0, init_mask};
    if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
        return (struct way){1, rtr | rtr_rc, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX};
    if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
        return (struct way){1, IBV_QP_SQ_PSN | rts_rc, again};
    if ((from == IBV_QPS_RTS || from == IBV_QPS_SQD) && to == IBV_QPS_RTS)
        return (struct way){1, 0, again};
    if (from == IBV_QPS_RTS && to == IBV_QPS_SQD)
        return (struct way){1, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY};
    if (from == IBV_QPS_SQD && to == IBV_QPS_SQD)
        return (struct way){
            1, 0, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | rts_rc | rtr_rc | (rc ? IBV_QP_PORT : 0)};
    return (struct way){0, 0, 0};
}

static void try_mask(enum ibv_qp_state from, enum ibv_qp_state to, int mask, int expected)
{
    struct ibv_qp_attr with = right_values(from, to);
    walk_to(from);
    const int got = ibv_modify_qp(a.qp, &with, mask | IBV_QP_STATE);
    if (got != expected)
        printf("FAILED: %s to %s with mask %#x\n", names[from], names[to], (unsigned)mask);
    CHECK("ibv_modify_qp", expected, got);
    CHECK("state", got == 0 ? to : from, state_of(a.qp));
}

/* What must be set alone; each of it left out; each other bit beside it; all at once. */
static void try_way(int rc, enum ibv_qp_state from, enum ibv_qp_state to)
{
    const struct way way = way_of(rc, from, to);
    try_mask(from, to, way.must, way.exists ? 0 : EINVAL);
    if (!way.exists)
        return;
    try_mask(from, to, way.must | way.may, 0);
    for (int bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        if ((bit & other_path) != 0)
            continue;
        if ((way.must & bit) != 0)
            try_mask(from, to, way.must & ~bit, EINVAL);
        else
            try_mask(from, to, way.must | bit, (way.may & bit) != 0 ? 0 : EINVAL);
    }
}

static void try_all_ways(int rc)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                               IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
    for (unsigned from = 0; from < 6; ++from)
        for (unsigned to = 0; to < 6; ++to)
            try_way(rc, states[from], states[to]);
    try_mask(IBV_QPS_RESET, IBV_QPS_SQE, 0, EINVAL);
}

static void try_value(enum ibv_qp_state from, enum ibv_qp_state to, int mask, const struct ibv_qp_attr* with)
{
    struct ibv_qp_attr values = *with;
    walk_to(from);
    CHECK("a value that is wrong", EINVAL, ibv_modify_qp(a.qp, &values, mask | IBV_QP_STATE));
    CHECK("state", from, state_of(a.qp));
    (void)to;
}

static void try_values(void)
{
    struct ibv_qp_attr with = right_values(IBV_QPS_RESET, IBV_QPS_INIT);
#define WRONG(from, to, mask, change)                                                                                  \
    do {                                                                                                               \
        with = right_values(from, to);                                                                                 \
        change;                                                                                                        \
        try_value(from, to, mask, &with);                                                                              \
    } while (0)
    WRONG(IBV_QPS_RESET, IBV_QPS_INIT, init_mask, with.port_num = 2);
    WRONG(IBV_QPS_RESET, IBV_QPS_INIT, init_mask, with.port_num = 0);
    WRONG(IBV_QPS_RESET, IBV_QPS_INIT, init_mask, with.pkey_index = 1);
    WRONG(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask_rc, with.ah_attr.port_num = 2);
    WRONG(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask_rc, with.ah_attr.grh.sgid_index = 200);
    WRONG(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask_rc, with.path_mtu = 0);
    WRONG(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask_rc, with.path_mtu = 6);
    WRONG(IBV_QPS_INIT, IBV_QPS_RTR, rtr_mask_rc, with.max_dest_rd_atomic = 17);
    WRONG(IBV_QPS_RTR, IBV_QPS_RTS, rts_mask_rc, with.max_rd_atomic = 17);
    WRONG(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_CUR_STATE, with.cur_qp_state = IBV_QPS_RTR);
    WRONG(IBV_QPS_RTS, IBV_QPS_RTS, 0, with.qp_state = (enum ibv_qp_state)7);
}

static struct ibv_qp_attr query(void)
{
    struct ibv_qp_attr now;
    struct ibv_qp_init_attr made;
    memset(&now, 0xee, sizeof now);
    CHECK("ibv_query_qp", 0, ibv_query_qp(a.qp, &now, every_bit, &made));
    CHECK("send_cq", (intptr_t)a.cq, (intptr_t)made.send_cq);
    CHECK("qp_type", a.qp->qp_type, made.qp_type);
    CHECK("sq_sig_all", 0, made.sq_sig_all);
    CHECK("cap", 1, now.cap.max_send_wr >= 64 && now.cap.max_recv_wr >= 64 && now.cap.max_send_sge >= 1);
    CHECK("cur_qp_state", now.qp_state, now.cur_qp_state);
    CHECK("path_mig_state", IBV_MIG_MIGRATED, now.path_mig_state);
    CHECK("qkey", 0, now.qkey);
    CHECK("pkey_index", 0, now.pkey_index);
    return now;
}

static void query_init(const struct ibv_qp_attr* now)
{
    CHECK("port_num", 1, now->port_num);
    CHECK("qp_access_flags", all_rights & ~IBV_ACCESS_LOCAL_WRITE, now->qp_access_flags);
}

static void query_rtr(const struct ibv_qp_attr* now, int rc, uint32_t psn)
{
    const struct ibv_qp_attr set = rtr_to(b.qp->qp_num);
    query_init(now);
    CHECK("path_mtu", set.path_mtu, now->path_mtu);
    CHECK("dest_qp_num", set.dest_qp_num, now->dest_qp_num);
    CHECK("rq_psn", psn, now->rq_psn);
    CHECK("is_global", 1, now->ah_attr.is_global);
    CHECK("dgid", 0, memcmp(&gid, &now->ah_attr.grh.dgid, sizeof gid));
    CHECK("sgid_index", 0, now->ah_attr.grh.sgid_index);
    CHECK("hop_limit", set.ah_attr.grh.hop_limit, now->ah_attr.grh.hop_limit);
    CHECK("traffic_class", set.ah_attr.grh.traffic_class, now->ah_attr.grh.traffic_class);
    CHECK("port of the path", 1, now->ah_attr.port_num);
    CHECK("max_dest_rd_atomic", rc ? set.max_dest_rd_atomic : 0, now->max_dest_rd_atomic);
    CHECK("min_rnr_timer", rc ? set.min_rnr_timer : 0, now->min_rnr_timer);
}

static void query_rts(const struct ibv_qp_attr* now, int rc, uint32_t psn)
{
    const struct ibv_qp_attr set = rts_values();
    CHECK("sq_psn", psn, now->sq_psn);
    CHECK("max_rd_atomic", rc ? set.max_rd_atomic : 0, now->max_rd_atomic);
    CHECK("timeout", rc ? set.timeout : 0, now->timeout);
    CHECK("retry_cnt", rc ? set.retry_cnt : 0, now->retry_cnt);
    CHECK("rnr_retry", rc ? set.rnr_retry : 0, now->rnr_retry);
}

static void query_reset(void)
{
    const struct ibv_qp_attr now = query();
    CHECK("state", IBV_QPS_RESET, now.qp_state);
    CHECK("everything is forgotten", 0,
          now.port_num | now.qp_access_flags | now.path_mtu | now.dest_qp_num | now.rq_psn | now.sq_psn | now.timeout |
              now.retry_cnt | now.ah_attr.is_global | now.max_rd_atomic | now.max_dest_rd_atomic);
}

/* a writes to b. */
static void exchange(unsigned count)
{
    for (uint64_t each = 0; each < count; ++each)
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, each));
    for (uint64_t each = 0; each < count; ++each) {
        const struct ibv_wc got = next_completion(a.cq);
        CHECK("status", IBV_WC_SUCCESS, got.status);
        CHECK("number", each, got.wr_id);
    }
}

static void change_in_sqd(int rc)
{
    struct ibv_qp_attr with = right_values(IBV_QPS_SQD, IBV_QPS_SQD), now;
    with.ah_attr.grh.traffic_class = 64;
    with.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    with.timeout = 15;
    CHECK("SQD to SQD", 0, ibv_modify_qp(a.qp, &with, IBV_QP_AV | IBV_QP_ACCESS_FLAGS | (rc ? IBV_QP_TIMEOUT : 0)));
    now = query();
    CHECK("traffic_class", 64, now.ah_attr.grh.traffic_class);
    CHECK("qp_access_flags", IBV_ACCESS_REMOTE_READ, now.qp_access_flags);
    CHECK("timeout", rc ? 15 : 0, now.timeout);
}

/* What is posted is flushed in the order of posting, before ERR and in it; nothing is left out. */
static void flush(void)
{
    uint64_t sends = 100, receives = 200;
    for (uint64_t each = 0; each < 10; ++each)
        CHECK("post_receive", 0, post_receive(a.qp, 8, receives + each));
    CHECK("to ERR", 0, to_state(a.qp, IBV_QPS_ERR));
    CHECK("state", IBV_QPS_ERR, query().qp_state);
    for (uint64_t each = 0; each < 10; ++each)
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, sends + each));
    for (uint64_t each = 10; each < 15; ++each)
        CHECK("post_receive", 0, post_receive(a.qp, 8, receives + each));
    for (unsigned each = 0; each < 25; ++each) {
        const struct ibv_wc got = next_completion(a.cq);
        CHECK("status", IBV_WC_WR_FLUSH_ERR, got.status);
        CHECK("qp_num", a.qp->qp_num, got.qp_num);
        CHECK("in order", got.wr_id < 200 ? sends++ : receives++, got.wr_id);
    }
    CHECK("all", 110 + 215, sends + receives);
}

/* Once around, with a look at everything in each state. */
static void look_in_all_states(int rc)
{
    struct ibv_qp_attr now;
    walk_to(IBV_QPS_RESET);
    query_reset();
    to_init(a.qp, all_rights);
    now = query();
    CHECK("state", IBV_QPS_INIT, now.qp_state);
    query_init(&now);
    to_rtr(a.qp, b.qp);
    now = query();
    CHECK("state", IBV_QPS_RTR, now.qp_state);
    query_rtr(&now, rc, 77);
    CHECK("sq_psn", 0, now.sq_psn);
    to_rts(a.qp);
    now = query();
    CHECK("state", IBV_QPS_RTS, now.qp_state);
    query_rtr(&now, rc, 77);
    query_rts(&now, rc, 77);
    to_init(b.qp, all_rights);
    to_rtr(b.qp, a.qp);
    to_rts(b.qp);
    exchange(3);
    now = query();
    query_rtr(&now, rc, 77);
    query_rts(&now, rc, 80);
    CHECK("to SQD", 0, to_state(a.qp, IBV_QPS_SQD));
    now = query();
    CHECK("state", IBV_QPS_SQD, now.qp_state);
    CHECK("sq_draining", 0, now.sq_draining);
    query_rtr(&now, rc, 77);
    query_rts(&now, rc, 80);
    change_in_sqd(rc);
    CHECK("to RTS", 0, to_state(a.qp, IBV_QPS_RTS));
    exchange(2);
    flush();
    CHECK("to RESET", 0, to_state(a.qp, IBV_QPS_RESET));
    CHECK("to RESET", 0, to_state(b.qp, IBV_QPS_RESET));
    query_reset();
    connect_ends(a.qp, b.qp, all_rights);
    exchange(3);
    CHECK("to RESET", 0, to_state(a.qp, IBV_QPS_RESET));
    CHECK("to RESET", 0, to_state(b.qp, IBV_QPS_RESET));
}

/* SQE, of UC: an entry has failed, those behind it are flushed, and RTS goes on. */
static void send_queue_error(void)
{
    struct ibv_qp_attr with = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey ^ 1};
    struct ibv_send_wr entry = {.sg_list = &piece,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    connect_ends(a.qp, b.qp, all_rights);
    CHECK("post", 0, ibv_post_send(a.qp, &entry, &bad));
    CHECK("status", IBV_WC_LOC_PROT_ERR, next_completion(a.cq).status);
    CHECK("state", IBV_QPS_SQE, state_of(a.qp));
    CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    CHECK("status", IBV_WC_WR_FLUSH_ERR, next_completion(a.cq).status);
    CHECK("SQE to SQD", EINVAL, to_state(a.qp, IBV_QPS_SQD));
    CHECK("SQE to SQE", EINVAL, to_state(a.qp, IBV_QPS_SQE));
    CHECK("SQE to RTS with a timer", EINVAL, ibv_modify_qp(a.qp, &with, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
    CHECK("state", IBV_QPS_SQE, state_of(a.qp));
    CHECK("SQE to RTS", 0, ibv_modify_qp(a.qp, &with, IBV_QP_STATE | IBV_QP_CUR_STATE));
    exchange(2);
    CHECK("to ERR", 0, to_state(a.qp, IBV_QPS_ERR));
    CHECK("to RESET", 0, to_state(a.qp, IBV_QPS_RESET));
    CHECK("to RESET", 0, to_state(b.qp, IBV_QPS_RESET));
}

/* ERR, of UC: a receive is too short for its message, and the one behind it is flushed. The peer stays in RTS. */
static void receive_error(void)
{
    connect_ends(a.qp, b.qp, all_rights);
    CHECK("post_receive", 0, post_receive(b.qp, 8, 1));
    CHECK("post_receive", 0, post_receive(b.qp, 64, 2));
    CHECK("post", 0, post(a.qp, IBV_WR_SEND, 64, 0, 3));
    CHECK("status of the send", IBV_WC_SUCCESS, next_completion(a.cq).status);
    CHECK("status", IBV_WC_LOC_LEN_ERR, next_completion(b.cq).status);
    CHECK("status of the next", IBV_WC_WR_FLUSH_ERR, next_completion(b.cq).status);
    CHECK("state", IBV_QPS_ERR, state_of(b.qp));
    CHECK("state of the peer", IBV_QPS_RTS, state_of(a.qp));
    CHECK("to RESET", 0, to_state(a.qp, IBV_QPS_RESET));
    CHECK("to RESET", 0, to_state(b.qp, IBV_QPS_RESET));
}

int main(int count, char** arguments)
{
    const int rc = count == 2 && strcmp(arguments[1], "uc") != 0;
    open_device();
    make_end(&a, 256, rc ? IBV_QPT_RC : IBV_QPT_UC);
    make_end(&b, 256, rc ? IBV_QPT_RC : IBV_QPT_UC);
    try_all_ways(rc);
    if (rc)
        try_values();
    look_in_all_states(rc);
    if (!rc) {
        send_queue_error();
        receive_error();
    }
    end_end(&a);
    end_end(&b);
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
