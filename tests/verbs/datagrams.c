/*
 * Unreliable datagrams by the installed libibverbs and libmlx5, at GID index 0 (IPv4) or 1 (IPv6): address handles,
 * also those made from a completion; what a completion tells of the sender; multicast groups; what is refused, with
 * which errno.
 */
#include "ends.h"

#include <arpa/inet.h>

enum { header_bytes = 40, payload_bytes = 100, key = 0x11111111 };

static int gid_index;

static void start(struct ibv_qp* qp)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = key};
    CHECK("INIT without a Q_Key", EINVAL, ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT));
    CHECK("INIT", 0, ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    CHECK("RTR", 0, to_state(qp, IBV_QPS_RTR));
    to.qp_state = IBV_QPS_RTS;
    to.sq_psn = 7;
    CHECK("RTS", 0, ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN));
    struct ibv_qp_init_attr made;
    CHECK("ibv_query_qp", 0, ibv_query_qp(qp, &to, IBV_QP_QKEY | IBV_QP_STATE, &made));
    CHECK("qkey", key, to.qkey);
    CHECK("state", IBV_QPS_RTS, to.qp_state);
}

static struct ibv_ah_attr way_to(union ibv_gid to)
{
    const struct ibv_ah_attr way = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = to, .sgid_index = (uint8_t)gid_index, .hop_limit = 9}};
    return way;
}

static void send_to(struct ibv_qp* from, struct ibv_ah* ah, uint32_t number, uint32_t bytes)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = bytes, .lkey = mr->lkey};
    struct ibv_send_wr entry = {.wr_id = 5,
                                .sg_list = &piece,
                                .num_sge = 1,
                                .opcode = IBV_WR_SEND_WITH_IMM,
                                .imm_data = htobe32(0xffff0000),
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.ud = {.ah = ah, .remote_qpn = number, .remote_qkey = key}},
                       *bad;
    CHECK("ibv_post_send", 0, ibv_post_send(from, &entry, &bad));
}

/* The next receive of an end, which is from `sender`, and has what the memory begins with. */
static struct ibv_wc take(struct end* at, struct ibv_qp* sender)
{
    struct ibv_wc got = next_completion(at->cq);
    CHECK("status", IBV_WC_SUCCESS, got.status);
    CHECK("opcode", IBV_WC_RECV, got.opcode);
    CHECK("byte_len", header_bytes + payload_bytes, got.byte_len);
    CHECK("src_qp", sender->qp_num, got.src_qp);
    CHECK("wc_flags", IBV_WC_GRH | IBV_WC_WITH_IMM, got.wc_flags);
    CHECK("imm_data", 0xffff0000, be32toh(got.imm_data));
    CHECK("pkey_index", 0, got.pkey_index);
    CHECK("payload", 0, memcmp(memory, memory + memory_bytes / 2 + header_bytes, payload_bytes));
    return got;
}

static void sent(struct end* by)
{
    struct ibv_wc got = next_completion(by->cq);
    CHECK("status of a send", IBV_WC_SUCCESS, got.status);
    CHECK("opcode of a send", IBV_WC_SEND, got.opcode);
    CHECK("wr_id", 5, got.wr_id);
}

static void answer(struct end* a, struct end* b)
{
    struct ibv_ah_attr way = way_to(gid);
    struct ibv_ah* ah = ibv_create_ah(pd, &way);
    NEED(ah);
    CHECK("post_receive", 0, post_receive(b->qp, 4096, 1));
    send_to(a->qp, ah, b->qp->qp_num, payload_bytes);
    sent(a);
    struct ibv_wc got = take(b, a->qp);
    struct ibv_ah* back = ibv_create_ah_from_wc(pd, &got, (struct ibv_grh*)(memory + memory_bytes / 2), 1);
    NEED(back);
    CHECK("post_receive", 0, post_receive(a->qp, 4096, 1));
    send_to(b->qp, back, got.src_qp, payload_bytes);
    sent(b);
    take(a, b->qp);
    CHECK("ibv_dealloc_pd with address handles", EBUSY, ibv_dealloc_pd(pd));
    CHECK("ibv_destroy_ah", 0, ibv_destroy_ah(back));
    CHECK("ibv_destroy_ah", 0, ibv_destroy_ah(ah));
}

static void send_to_group(struct end* a, struct end* b)
{
    union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 7}};
    if (gid_index == 0)
        memcpy(group.raw, (uint8_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 1, 7}, sizeof group);
    CHECK("ibv_attach_mcast of a host", EINVAL, ibv_attach_mcast(b->qp, &gid, 0));
    CHECK("ibv_detach_mcast before", EINVAL, ibv_detach_mcast(b->qp, &group, 0));
    CHECK("ibv_attach_mcast", 0, ibv_attach_mcast(b->qp, &group, 0));
    struct ibv_ah_attr way = way_to(group);
    struct ibv_ah* ah = ibv_create_ah(pd, &way);
    NEED(ah);
    CHECK("post_receive", 0, post_receive(b->qp, 4096, 1));
    send_to(a->qp, ah, 0xffffff, payload_bytes);
    sent(a);
    take(b, a->qp);
    CHECK("ibv_destroy_qp of a member", EBUSY, ibv_destroy_qp(b->qp));
    CHECK("ibv_detach_mcast", 0, ibv_detach_mcast(b->qp, &group, 0));
    CHECK("ibv_destroy_ah", 0, ibv_destroy_ah(ah));
}

/* libmlx5 refuses what has no GID, the engine what has an unknown one. */
static void refuse(void)
{
    struct ibv_ah_attr way = way_to(gid);
    way.is_global = 0;
    CHECK("an address handle without a GID", 0, ibv_create_ah(pd, &way) != NULL);
    CHECK("its errno", EINVAL, errno);
    way = way_to(gid);
    way.grh.sgid_index = 4;
    CHECK("an address handle from an empty GID index", 0, ibv_create_ah(pd, &way) != NULL);
    way = way_to((union ibv_gid){.raw = {0}});
    CHECK("an address handle to nobody", 0, ibv_create_ah(pd, &way) != NULL);
}

/* A receive is too short for its message: as on a ConnectX, the queue pair is in ERR, and what is behind is flushed. */
static void fail(struct end* a, struct end* b)
{
    struct ibv_ah_attr way = way_to(gid);
    struct ibv_ah* ah = ibv_create_ah(pd, &way);
    NEED(ah);
    CHECK("post_receive", 0, post_receive(b->qp, header_bytes + payload_bytes - 1, 1));
    CHECK("post_receive", 0, post_receive(b->qp, 4096, 2));
    send_to(a->qp, ah, b->qp->qp_num, payload_bytes);
    sent(a);
    CHECK("status of the short receive", IBV_WC_LOC_LEN_ERR, next_completion(b->cq).status);
    CHECK("status of the next receive", IBV_WC_WR_FLUSH_ERR, next_completion(b->cq).status);
    CHECK("state", IBV_QPS_ERR, state_of(b->qp));
    CHECK("ibv_destroy_ah", 0, ibv_destroy_ah(ah));
}

int main(int argc, char** argv)
{
    struct end a, b;
    gid_index = argc > 1 ? atoi(argv[1]) : 0;
    open_device();
    NEED(ibv_query_gid(context, 1, gid_index, &gid) == 0);
    for (int at = 0; at < memory_bytes / 2; ++at)
        memory[at] = (char)(at * 7 + 1);
    make_end(&a, 256, IBV_QPT_UD);
    make_end(&b, 256, IBV_QPT_UD);
    start(a.qp);
    start(b.qp);
    answer(&a, &b);
    send_to_group(&a, &b);
    refuse();
    fail(&a, &b);
    end_end(&a);
    end_end(&b);
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
