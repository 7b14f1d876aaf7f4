/* Asynchronous events of queue pairs and completion queues, for tests/scripts/run_events.sh. */
#include <infiniband/mlx5dv.h>

#include <endian.h>

#include "ends.h"

static struct end a, b;

static void make_ends(int entries)
{
    make_end(&a, entries, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
}

static void end_ends(void)
{
    end_end(&a);
    end_end(&b);
}

/* The first packet that comes in RTR, and none that comes later. */
static void communication_established(void)
{
    make_ends(64);
    to_init(a.qp, all_rights);
    to_init(b.qp, all_rights);
    to_rtr(a.qp, b.qp);
    to_rtr(b.qp, a.qp);
    to_rts(a.qp);
    expect_silence("no packet has come");
    for (int each = 0; each < 2; ++each) {
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
        CHECK("written in RTR", IBV_WC_SUCCESS, next_completion(a.cq).status);
    }
    expect_event(IBV_EVENT_COMM_EST, b.qp);
    to_rts(b.qp);
    CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    CHECK("written in RTS", IBV_WC_SUCCESS, next_completion(a.cq).status);
    expect_silence("established once");
    end_ends();
}

static void drained(void)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    make_ends(64);
    connect_ends(a.qp, b.qp, all_rights);
    for (uint64_t each = 0; each < 16; ++each)
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 4096, mr->rkey, each));
    CHECK("RTS to SQD", 0, ibv_modify_qp(a.qp, &to, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    expect_event(IBV_EVENT_SQ_DRAINED, a.qp);
    to_state(a.qp, IBV_QPS_RTS);
    for (uint64_t each = 0; each < 16; ++each)
        CHECK("all are written", each, next_completion(a.cq).wr_id);
    CHECK("RTS to SQD", 0, to_state(a.qp, IBV_QPS_SQD));
    expect_silence("nobody has asked");
    end_ends();
}

/* A request that is wrong: a completion at one end, an event at the other. */
static void refused(enum ibv_wr_opcode opcode, uint32_t rkey, unsigned rights, enum ibv_wc_status status,
                    enum ibv_event_type type)
{
    make_ends(64);
    connect_ends(a.qp, b.qp, rights);
    CHECK("post", 0, post(a.qp, opcode, 8, rkey, 5));
    const struct ibv_wc got = next_completion(a.cq);
    CHECK("status", status, got.status);
    CHECK("number", 5, got.wr_id);
    expect_event(type, b.qp);
    expect_silence("a failure that is completed is no event");
    CHECK("state", IBV_QPS_ERR, state_of(a.qp));
    CHECK("state", IBV_QPS_ERR, state_of(b.qp));
    end_ends();
}

/* A receive that is too short is completed with its error: no event at either end. */
static void receive_too_short(void)
{
    make_ends(64);
    connect_ends(a.qp, b.qp, all_rights);
    CHECK("post_receive", 0, post_receive(b.qp, 8, 6));
    CHECK("post", 0, post(a.qp, IBV_WR_SEND, 16, 0, 5));
    CHECK("at the sender", IBV_WC_REM_INV_REQ_ERR, next_completion(a.cq).status);
    CHECK("at the receiver", IBV_WC_LOC_LEN_ERR, next_completion(b.cq).status);
    expect_silence("both are completed");
    end_ends();
}

/* A doorbell record that claims more entries than the ring has. */
static void wrong_record(void)
{
    struct mlx5dv_qp raw = {0};
    struct mlx5dv_obj of = {.qp = {.out = &raw}};
    make_ends(64);
    connect_ends(a.qp, b.qp, all_rights);
    of.qp.in = a.qp;
    NEED(mlx5dv_init_obj(&of, MLX5DV_OBJ_QP) == 0);
    __atomic_store_n(&raw.dbrec[1], htobe32(raw.sq.wqe_cnt + 1), __ATOMIC_RELEASE);
    expect_event(IBV_EVENT_QP_FATAL, a.qp);
    CHECK("state", IBV_QPS_ERR, state_of(a.qp));
    end_ends();
}

static void overrun(void)
{
    struct ibv_async_event got[2];
    make_ends(1);
    connect_ends(a.qp, b.qp, all_rights);
    for (uint64_t each = 0; each < 8; ++each)
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, each));
    for (int each = 0; each < 2; ++each) {
        errno = ETIMEDOUT;
        NEED(an_event_waits((int)(patience() * 1000)));
        NEED(ibv_get_async_event(context, &got[each]) == 0);
    }
    const int first = got[0].event_type == IBV_EVENT_CQ_ERR ? 0 : 1;
    CHECK("event", IBV_EVENT_CQ_ERR, got[first].event_type);
    CHECK("completion queue", (intptr_t)a.cq, (intptr_t)got[first].element.cq);
    CHECK("event", IBV_EVENT_QP_FATAL, got[!first].event_type);
    CHECK("queue pair", (intptr_t)a.qp, (intptr_t)got[!first].element.qp);
    ibv_ack_async_event(&got[0]);
    ibv_ack_async_event(&got[1]);
    expect_silence("each once");
    end_ends();
}

/* What is destroyed takes its unread events along, and leaves those of others. */
static void unread(void)
{
    make_ends(64);
    connect_ends(a.qp, b.qp, all_rights);
    post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey ^ 1, 5);
    next_completion(a.cq);
    CHECK("an event waits", 1, an_event_waits((int)(patience() * 1000)));
    CHECK("destroyed without a wait for who reads", 0, ibv_destroy_qp(b.qp));
    expect_silence("its event has gone");
    b.qp = make_qp(b.cq, IBV_QPT_RC);
    end_ends();
}

static long link_downed(void)
{
    long value = -1;
    FILE* const file = fopen("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "r");
    NEED(file && fscanf(file, "%ld", &value) == 1);
    fclose(file);
    return value;
}

/* The port goes down and comes back, as the script has it when it reads these lines. */
static void port_changes(void)
{
    struct ibv_port_attr port;
    make_ends(64);
    CHECK("query", 0, ibv_query_port(context, 1, &port));
    CHECK("state", IBV_PORT_ACTIVE, port.state);
    CHECK("link_downed", 0, link_downed());
    for (int up = 0; up < 2; ++up) {
        puts(up ? "down" : "ready");
        fflush(stdout);
        expect_event(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, (void*)1);
        CHECK("link_downed", 1, link_downed());
    }
    CHECK("query", 0, ibv_query_port(context, 1, &port));
    CHECK("state", IBV_PORT_ACTIVE, port.state);
    end_ends();
}

int main(int count, char** arguments)
{
    open_device();
    if (count == 2 && strcmp(arguments[1], "port") == 0) {
        port_changes();
        close_device();
        printf("%d checks failed\n", failed_checks);
        return failed_checks != 0;
    }
    communication_established();
    drained();
    refused(IBV_WR_RDMA_WRITE, mr->rkey ^ 1, all_rights, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    refused(IBV_WR_RDMA_READ, mr->rkey, IBV_ACCESS_REMOTE_WRITE, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    receive_too_short();
    wrong_record();
    overrun();
    unread();
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
