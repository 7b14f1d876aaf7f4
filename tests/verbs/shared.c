/* Shared receive queues as programs use them, for tests/scripts/run_shared.sh. */
#include <infiniband/mlx5dv.h>

#include <endian.h>

#include "ends.h"

enum { pairs = 3, piece_bytes = 256 };

static struct ibv_srq* shared;
static struct end senders[pairs], receivers[pairs];

static struct ibv_qp* make_sharing(struct ibv_cq* cq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr wanted = {
        .send_cq = cq, .recv_cq = cq, .srq = shared, .cap = {.max_send_wr = 16, .max_send_sge = 1}, .qp_type = type};
    struct ibv_qp* made = ibv_create_qp(pd, &wanted);
    NEED(made);
    return made;
}

static void make_shared(uint32_t entries)
{
    struct ibv_srq_init_attr wanted = {.attr = {.max_wr = entries, .max_sge = 2, .srq_limit = 1}};
    NEED(shared = ibv_create_srq(pd, &wanted));
    CHECK("at least as many entries", 1, wanted.attr.max_wr >= entries);
}

static void begin(uint32_t entries, enum ibv_qp_type type)
{
    make_shared(entries);
    for (int each = 0; each < pairs; ++each) {
        make_end(&senders[each], 64, type);
        NEED(receivers[each].cq = ibv_create_cq(context, 64, NULL, NULL, 0));
        receivers[each].qp = make_sharing(receivers[each].cq, type);
        connect_ends(senders[each].qp, receivers[each].qp, all_rights);
    }
}

static void end(void)
{
    CHECK("destroyed while queue pairs use it", EBUSY, ibv_destroy_srq(shared));
    for (int each = 0; each < pairs; ++each) {
        end_end(&senders[each]);
        end_end(&receivers[each]);
    }
    CHECK("ibv_destroy_srq", 0, ibv_destroy_srq(shared));
}

static int post_shared(uint64_t wr_id, uint32_t lkey)
{
    struct ibv_sge piece = {
        .addr = (uintptr_t)memory + memory_bytes / 2 + wr_id * piece_bytes, .length = piece_bytes, .lkey = lkey};
    struct ibv_recv_wr entry = {.wr_id = wr_id, .sg_list = &piece, .num_sge = 1}, *bad;
    return ibv_post_srq_recv(shared, &entry, &bad);
}

static struct ibv_srq_attr attributes(void)
{
    struct ibv_srq_attr now = {0};
    CHECK("ibv_query_srq", 0, ibv_query_srq(shared, &now));
    return now;
}

static void arm(uint32_t limit)
{
    struct ibv_srq_attr to = {.srq_limit = limit};
    CHECK("ibv_modify_srq", 0, ibv_modify_srq(shared, &to, IBV_SRQ_LIMIT));
}

static void expect_received(int at, uint64_t wr_id)
{
    const struct ibv_wc got = next_completion(receivers[at].cq);
    CHECK("status of a receive", IBV_WC_SUCCESS, got.status);
    CHECK("entry", wr_id, got.wr_id);
    CHECK("queue pair", receivers[at].qp->qp_num, got.qp_num);
}

static void send_from(int each)
{
    CHECK("post", 0, post(senders[each].qp, IBV_WR_SEND, 8, 0, 1));
    CHECK("status of a send", IBV_WC_SUCCESS, next_completion(senders[each].cq).status);
}

/* Entries go to messages in the order of both, and come back in any order; the ring is full and empty many times. */
static void serves_all(enum ibv_qp_type type)
{
    begin(3, type);
    for (uint64_t turn = 0; turn < 50; ++turn) {
        for (uint64_t each = 0; each < pairs; ++each)
            CHECK("post_shared", 0, post_shared(turn + each, mr->lkey));
        CHECK("full", ENOMEM, post_shared(99, mr->lkey));
        for (int each = 0; each < pairs; ++each)
            send_from((int)(turn + each) % pairs);
        for (int each = pairs; each-- > 0;)
            expect_received((int)(turn + each) % pairs, turn + each);
    }
    end();
}

/* Without an entry, RC asks the sender to wait, and UC loses the message. */
static void empty(enum ibv_qp_type type)
{
    rnr_retry = 7;
    begin(4, type);
    CHECK("post", 0, post(senders[0].qp, IBV_WR_SEND, 8, 0, 1));
    if (type == IBV_QPT_UC)
        CHECK("status of a lost send", IBV_WC_SUCCESS, next_completion(senders[0].cq).status);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CHECK("post_shared", 0, post_shared(5, mr->lkey));
    if (type == IBV_QPT_UC)
        send_from(0);
    expect_received(0, 5);
    if (type == IBV_QPT_RC)
        CHECK("status of a send that waited", IBV_WC_SUCCESS, next_completion(senders[0].cq).status);
    rnr_retry = 6;
    end();
}

/* The event of the limit comes once for each ibv_modify_srq(). */
static void limit(void)
{
    begin(16, IBV_QPT_RC);
    CHECK("the limit of ibv_create_srq is ignored, as in Linux", 0, attributes().srq_limit);
    for (uint64_t each = 0; each < 6; ++each)
        post_shared(each, mr->lkey);
    arm(4);
    CHECK("limit", 4, attributes().srq_limit);
    send_from(0);
    send_from(1);
    expect_silence("4 entries wait");
    send_from(2);
    expect_event(IBV_EVENT_SRQ_LIMIT_REACHED, shared);
    CHECK("limit", 0, attributes().srq_limit);
    send_from(0);
    expect_silence("it is armed no more");
    arm(3);
    expect_event(IBV_EVENT_SRQ_LIMIT_REACHED, shared); /* two wait */
    struct ibv_srq_attr to = {.srq_limit = attributes().max_wr + 1, .max_wr = 64};
    CHECK("a limit above the size", EINVAL, ibv_modify_srq(shared, &to, IBV_SRQ_LIMIT));
    CHECK("another size", EINVAL, ibv_modify_srq(shared, &to, IBV_SRQ_MAX_WR));
    CHECK("size", 1, attributes().max_wr >= 16);
    arm(2);
    send_from(1); /* its event is never read */
    end();
    expect_silence("its events have gone");
}

/* An entry with a wrong key ends the queue pair that takes it. The others take the next ones. */
static void wrong_key(void)
{
    begin(8, IBV_QPT_RC);
    post_shared(0, mr->lkey ^ 0x100);
    post_shared(1, mr->lkey);
    post_shared(2, mr->lkey);
    CHECK("post", 0, post(senders[1].qp, IBV_WR_SEND, 8, 0, 1));
    CHECK("at the sender", IBV_WC_REM_OP_ERR, next_completion(senders[1].cq).status);
    const struct ibv_wc got = next_completion(receivers[1].cq);
    CHECK("at the receiver", IBV_WC_LOC_PROT_ERR, got.status);
    CHECK("entry", 0, got.wr_id);
    expect_event(IBV_EVENT_QP_LAST_WQE_REACHED, receivers[1].qp);
    send_from(0);
    expect_received(0, 1);
    send_from(2);
    expect_received(2, 2);
    struct ibv_wc more;
    CHECK("nothing else is completed", 0, ibv_poll_cq(receivers[1].cq, 1, &more));
    end();
}

/* A queue pair in ERR or RESET leaves the entries to the others. */
static void ended_pairs(void)
{
    struct ibv_wc none;
    begin(8, IBV_QPT_RC);
    post_shared(0, mr->lkey);
    CHECK("to ERR", 0, to_state(receivers[0].qp, IBV_QPS_ERR));
    expect_event(IBV_EVENT_QP_LAST_WQE_REACHED, receivers[0].qp);
    CHECK("again to ERR", 0, to_state(receivers[0].qp, IBV_QPS_ERR));
    expect_silence("the last entry is told once");
    CHECK("nothing is flushed", 0, ibv_poll_cq(receivers[0].cq, 1, &none));
    CHECK("to RESET", 0, to_state(receivers[1].qp, IBV_QPS_RESET));
    send_from(2);
    expect_received(2, 0);
    /* Both begin again. */
    for (int each = 0; each < 2; ++each) {
        CHECK("to RESET", 0, to_state(receivers[each].qp, IBV_QPS_RESET));
        CHECK("to RESET", 0, to_state(senders[each].qp, IBV_QPS_RESET));
        connect_ends(senders[each].qp, receivers[each].qp, all_rights);
        post_shared(7, mr->lkey);
        send_from(each);
        expect_received(each, 7);
    }
    CHECK("to ERR", 0, to_state(receivers[0].qp, IBV_QPS_ERR));
    expect_event(IBV_EVENT_QP_LAST_WQE_REACHED, receivers[0].qp);
    end();
}

/* A queue pair that is reset between a message and the look at its completion: no entry is lost. */
static void reset_at_any_time(void)
{
    begin(8, IBV_QPT_UC);
    post_shared(3, mr->lkey);
    for (int each = 0; each < 200; ++each) {
        CHECK("post", 0, post(senders[0].qp, IBV_WR_SEND, piece_bytes, 0, 1));
        CHECK("to RESET", 0, to_state(receivers[0].qp, IBV_QPS_RESET));
        struct ibv_wc got;
        next_completion(senders[0].cq);
        if (ibv_poll_cq(receivers[0].cq, 1, &got) == 1)
            post_shared(3, mr->lkey);
        to_init(receivers[0].qp, all_rights);
        to_rtr(receivers[0].qp, senders[0].qp);
        to_rts(receivers[0].qp);
    }
    end();
}

/* A record that claims more entries than the ring holds ends the queue pair that takes one. */
static void wrong_record(void)
{
    struct mlx5dv_srq raw = {0};
    struct mlx5dv_obj of = {.srq = {.in = NULL, .out = &raw}};
    begin(4, IBV_QPT_RC);
    of.srq.in = shared;
    NEED(mlx5dv_init_obj(&of, MLX5DV_OBJ_SRQ) == 0);
    __atomic_store_n(&raw.dbrec[0], htobe32(500), __ATOMIC_RELEASE);
    CHECK("post", 0, post(senders[0].qp, IBV_WR_SEND, 8, 0, 1));
    struct ibv_async_event got;
    int seen = 0;
    for (int each = 0; each < 3; ++each) { /* in any order */
        errno = ETIMEDOUT;
        NEED(an_event_waits((int)(patience() * 1000)));
        NEED(ibv_get_async_event(context, &got) == 0);
        seen |= 1 << (int)got.event_type;
        ibv_ack_async_event(&got);
    }
    CHECK("events", 1 << IBV_EVENT_QP_FATAL | 1 << IBV_EVENT_QP_LAST_WQE_REACHED | 1 << IBV_EVENT_SRQ_ERR, seen);
    CHECK("state", IBV_QPS_ERR, state_of(receivers[0].qp));
    CHECK("state of another", IBV_QPS_RTS, state_of(receivers[1].qp));
    end();
}

static void refused(void)
{
    struct ibv_device_attr device;
    CHECK("ibv_query_device", 0, ibv_query_device(context, &device));
    struct ibv_srq_init_attr wanted = {.attr = {.max_wr = (uint32_t)device.max_srq_wr + 1, .max_sge = 1}};
    CHECK("too many entries", 1, ibv_create_srq(pd, &wanted) == NULL);
    wanted.attr.max_wr = 16;
    wanted.attr.max_sge = (uint32_t)device.max_srq_sge + 1;
    CHECK("too many segments", 1, ibv_create_srq(pd, &wanted) == NULL);
    wanted.attr.max_wr = (uint32_t)device.max_srq_wr;
    wanted.attr.max_sge = (uint32_t)device.max_srq_sge;
    NEED(shared = ibv_create_srq(pd, &wanted));
    CHECK("ibv_destroy_srq", 0, ibv_destroy_srq(shared));
    struct ibv_srq_init_attr_ex basic = {.attr = {.max_wr = 16, .max_sge = 1},
                                         .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                         .srq_type = IBV_SRQT_BASIC,
                                         .pd = pd};
    NEED(shared = ibv_create_srq_ex(context, &basic));
    CHECK("ibv_destroy_srq", 0, ibv_destroy_srq(shared));
}

int main(void)
{
    open_device();
    refused();
    serves_all(IBV_QPT_RC);
    serves_all(IBV_QPT_UC);
    empty(IBV_QPT_RC);
    empty(IBV_QPT_UC);
    limit();
    wrong_key();
    ended_pairs();
    reset_at_any_time();
    wrong_record();
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
