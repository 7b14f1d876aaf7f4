/* Memory windows as programs use them, for tests/scripts/run_windows.sh. */
#include "ends.h"

enum { lent_at = memory_bytes / 2, lent = 4096 };

static struct end a, b; /* b lends, a accesses */
static struct ibv_pd* other_pd;
static struct ibv_mr* open_mr; /* windows may be bound to it */

static void begin(enum ibv_qp_type type)
{
    make_end(&a, 128, type);
    make_end(&b, 128, type);
    connect_ends(a.qp, b.qp, all_rights);
}

static void end(void)
{
    end_end(&a);
    end_end(&b);
}

static struct ibv_wc run(struct end* by, struct ibv_send_wr entry)
{
    struct ibv_send_wr* bad;
    entry.send_flags |= IBV_SEND_SIGNALED;
    CHECK("ibv_post_send", 0, ibv_post_send(by->qp, &entry, &bad));
    return next_completion(by->cq);
}

static struct ibv_send_wr bind_entry(struct ibv_mw* window, uint32_t rkey, uint64_t bytes, unsigned rights)
{
    struct ibv_send_wr entry = {
        .wr_id = 1,
        .opcode = IBV_WR_BIND_MW,
        .bind_mw = {.mw = window,
                    .rkey = rkey,
                    .bind_info = {.mr = open_mr,
                                  .addr = (uintptr_t)memory + lent_at,
                                  .length = bytes,
                                  .mw_access_flags = rights}},
    };
    return entry;
}

static struct ibv_wc lend(struct ibv_mw* window, uint32_t rkey, unsigned rights)
{
    const struct ibv_wc got = run(&b, bind_entry(window, rkey, lent, rights));
    if (got.status == IBV_WC_SUCCESS) {
        CHECK("opcode of a bind's completion", IBV_WC_BIND_MW, got.opcode);
        window->rkey = rkey;
    }
    return got;
}

static struct ibv_wc invalidate(uint32_t rkey)
{
    struct ibv_send_wr entry = {.wr_id = 2, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey};
    return run(&b, entry);
}

static enum ibv_wc_status access_by(enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t at, uint32_t bytes)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = bytes, .lkey = mr->lkey};
    struct ibv_send_wr entry = {.wr_id = 3, .sg_list = &piece, .num_sge = 1, .opcode = opcode};
    entry.wr.rdma.remote_addr = (uintptr_t)memory + lent_at + at;
    entry.wr.rdma.rkey = rkey;
    return run(&a, entry).status;
}

static struct ibv_mw* make_window(enum ibv_mw_type type)
{
    struct ibv_mw* made = ibv_alloc_mw(pd, type);
    NEED(made);
    return made;
}

static void type_2(enum ibv_qp_type service)
{
    begin(service);
    struct ibv_mw* window = make_window(IBV_MW_TYPE_2);
    const uint32_t rkey = (window->rkey & ~0xffu) | 0x5a;
    CHECK("bind", IBV_WC_SUCCESS, lend(window, rkey, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ).status);
    memset(memory, 'x', lent);
    CHECK("WRITE", IBV_WC_SUCCESS, access_by(IBV_WR_RDMA_WRITE, rkey, 0, lent));
    if (service == IBV_QPT_RC) {
        CHECK("READ", IBV_WC_SUCCESS, access_by(IBV_WR_RDMA_READ, rkey, lent - 8, 8));
        CHECK("bytes", 'x', memory[lent_at + lent - 1]);
    }
    errno = 0;
    CHECK("ibv_dereg_mr with a window", EINVAL, ibv_dereg_mr(open_mr));
    CHECK("ibv_rereg_mr with a window", 1, ibv_rereg_mr(open_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
    CHECK("LOCAL_INV", IBV_WC_SUCCESS, invalidate(rkey).status);
    if (service == IBV_QPT_RC)
        CHECK("WRITE by the old key", IBV_WC_REM_ACCESS_ERR, access_by(IBV_WR_RDMA_WRITE, rkey, 0, 8));
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(window));
    end();
}

static void type_1(void)
{
    begin(IBV_QPT_RC);
    struct ibv_mw* window = make_window(IBV_MW_TYPE_1);
    struct ibv_mw_bind wanted = {
        .wr_id = 4,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = open_mr,
                      .addr = (uintptr_t)memory + lent_at,
                      .length = lent,
                      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE},
    };
    for (int each = 0; each < 200; ++each) { /* some of them continue at the start of the ring */
        const uint32_t before = window->rkey;
        CHECK("ibv_bind_mw", 0, ibv_bind_mw(b.qp, window, &wanted));
        const struct ibv_wc got = next_completion(b.cq);
        CHECK("bind", IBV_WC_SUCCESS, got.status);
        CHECK("opcode", IBV_WC_BIND_MW, got.opcode);
        CHECK("next key", (before & ~0xffu) | ((before + 1) & 0xff), window->rkey);
        CHECK("WRITE", IBV_WC_SUCCESS, access_by(IBV_WR_RDMA_WRITE, window->rkey, 0, 100));
    }
    CHECK("IBV_WR_BIND_MW of a window of type 1", IBV_WC_SUCCESS,
          lend(window, window->rkey ^ 0x80, IBV_ACCESS_REMOTE_WRITE).status);
    wanted.bind_info.length = 0;
    const uint32_t before = window->rkey;
    CHECK("ibv_bind_mw of 0 bytes", 0, ibv_bind_mw(b.qp, window, &wanted));
    CHECK("unbind", IBV_WC_SUCCESS, next_completion(b.cq).status);
    CHECK("WRITE after it", IBV_WC_REM_ACCESS_ERR, access_by(IBV_WR_RDMA_WRITE, before, 0, 8));
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(window));
    end();
}

static void by_send_with_invalidate(void)
{
    begin(IBV_QPT_RC);
    struct ibv_mw* window = make_window(IBV_MW_TYPE_2);
    const uint32_t rkey = window->rkey + 1;
    CHECK("bind", IBV_WC_SUCCESS, lend(window, rkey, IBV_ACCESS_REMOTE_WRITE).status);
    for (int each = 0; each < 2; ++each)
        CHECK("post", 0, post_receive(b.qp, 64, 5));
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey};
    struct ibv_send_wr entry = {
        .wr_id = 6, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey};
    CHECK("SEND with invalidate", IBV_WC_SUCCESS, run(&a, entry).status);
    const struct ibv_wc got = next_completion(b.cq);
    CHECK("its receive", IBV_WC_SUCCESS, got.status);
    CHECK("flags", IBV_WC_WITH_INV, got.wc_flags & IBV_WC_WITH_INV);
    CHECK("key", rkey, got.invalidated_rkey);
    CHECK("a second one", IBV_WC_SUCCESS, run(&a, entry).status); /* the peer is not told */
    CHECK("its receive", IBV_WC_REM_INV_REQ_ERR, next_completion(b.cq).status);
    CHECK("state", IBV_QPS_ERR, state_of(b.qp));
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(window));
    end();
}

/* What only the device can judge. */
static void refusals(void)
{
    struct ibv_mr* const whole = open_mr;
    for (int each = 0; each < 7; ++each) {
        begin(IBV_QPT_RC);
        struct ibv_mw* window = make_window(IBV_MW_TYPE_2);
        uint32_t rkey = window->rkey + 1;
        unsigned rights = IBV_ACCESS_REMOTE_WRITE;
        switch (each) {
            case 0: open_mr = ibv_reg_mr(pd, memory, sizeof memory, all_rights); break;
            case 1: open_mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_MW_BIND); break;
            case 2: open_mr = ibv_reg_mr(other_pd, memory, sizeof memory, all_rights | IBV_ACCESS_MW_BIND); break;
            case 3: CHECK("bind", IBV_WC_SUCCESS, lend(window, rkey++, rights).status); break; /* not free */
            default: break;
        }
        const struct ibv_wc got = each < 4    ? lend(window, rkey, rights)
                                  : each == 4 ? invalidate(window->rkey)
                                  : each == 5 ? invalidate(mr->rkey)
                                              : run(&b, bind_entry(window, rkey, 0, rights));
        CHECK("a bind or an invalidation that must fail", IBV_WC_MW_BIND_ERR, got.status);
        if (got.status != IBV_WC_MW_BIND_ERR)
            printf("FAILED: case %d\n", each);
        CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(window));
        if (open_mr != whole)
            CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(open_mr));
        open_mr = whole;
        end();
    }
}

/* As a ConnectX: a bind beyond its region succeeds, an access beyond it does not, and an atomic never does. */
static void as_hardware(void)
{
    begin(IBV_QPT_RC);
    struct ibv_mw* window = make_window(IBV_MW_TYPE_2);
    struct ibv_send_wr beyond = bind_entry(window, window->rkey + 1, memory_bytes, IBV_ACCESS_REMOTE_WRITE);
    CHECK("bind beyond the region", IBV_WC_SUCCESS, run(&b, beyond).status);
    CHECK("WRITE inside", IBV_WC_SUCCESS,
          access_by(IBV_WR_RDMA_WRITE, window->rkey + 1, memory_bytes - lent_at - 8, 8));
    CHECK("WRITE beyond", IBV_WC_REM_ACCESS_ERR,
          access_by(IBV_WR_RDMA_WRITE, window->rkey + 1, memory_bytes - lent_at - 7, 8));
    CHECK("ibv_dealloc_mw of a bound window", 0, ibv_dealloc_mw(window));
    end();
    begin(IBV_QPT_RC);
    window = make_window(IBV_MW_TYPE_2);
    struct ibv_send_wr entry = bind_entry(window, window->rkey, 0, 0), *bad;
    CHECK("an unsignaled bind that fails", 0, ibv_post_send(b.qp, &entry, &bad));
    entry = (struct ibv_send_wr){.wr_id = 9, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    CHECK("post", 0, ibv_post_send(b.qp, &entry, &bad));
    const struct ibv_wc got = next_completion(b.cq);
    CHECK("the first completion is that of the entry behind it", 9, got.wr_id);
    CHECK("its status", IBV_WC_WR_FLUSH_ERR, got.status);
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(window));
    end();
}

static void objects(void)
{
    struct ibv_device_attr says;
    CHECK("ibv_query_device", 0, ibv_query_device(context, &says));
    CHECK("windows of type 2B", IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS,
          says.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A |
                                   IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS));
    CHECK("max_mw", 1, says.max_mw > 0);
    struct ibv_mw* window = make_window(IBV_MW_TYPE_2);
    CHECK("another window has another key", 1, make_window(IBV_MW_TYPE_1)->rkey >> 8 != window->rkey >> 8);
    errno = 0;
    CHECK("a window of no type", 1, ibv_alloc_mw(pd, (enum ibv_mw_type)3) == NULL);
    CHECK("its errno", EINVAL, errno);
    struct ibv_pd* held = ibv_alloc_pd(context);
    NEED(held);
    struct ibv_mw* holds = ibv_alloc_mw(held, IBV_MW_TYPE_2);
    NEED(holds);
    CHECK("ibv_dealloc_pd with a window", EBUSY, ibv_dealloc_pd(held));
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(holds));
    CHECK("ibv_dealloc_pd", 0, ibv_dealloc_pd(held));
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(window));
}

int main(void)
{
    open_device();
    NEED(other_pd = ibv_alloc_pd(context));
    NEED(open_mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
    objects();
    type_2(IBV_QPT_RC);
    type_2(IBV_QPT_UC);
    type_1();
    by_send_with_invalidate();
    refusals();
    as_hardware();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
