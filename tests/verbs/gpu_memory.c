/* Memory of a GPU in verbs, for tests/scripts/run_gpu_memory.sh: ibv_reg_mr of what cuMemAlloc has allocated. The
 * argument names a case. The driver is opened at run time: NVIDIA's, or the stand-in of tests/vendor. Side a sends to
 * side b, each at a device of its own if there are two. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define memory_bytes memory_of_ends /* not used here */
#include "ends.h"
#undef memory_bytes

enum { bytes = 1 << 20, half = bytes / 2, entries = 64, may_do_all = all_rights | IBV_ACCESS_REMOTE_ATOMIC };

typedef unsigned long long device_pointer;
static int (*init)(unsigned), (*retain)(void**, int), (*set_current)(void*), (*create)(void**, unsigned, int);
static int (*allocate)(device_pointer*, size_t), (*release)(device_pointer);
static int (*to_gpu)(device_pointer, const void*, size_t), (*from_gpu)(void*, device_pointer, size_t);
static int (*describe)(void*, device_pointer, size_t, int, unsigned long long);

static void open_driver(void)
{
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    void* of_gpu = NULL;
    NEED(driver);
    NEED(init = (int (*)(unsigned))dlsym(driver, "cuInit"));
    NEED(retain = (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain"));
    NEED(set_current = (int (*)(void*))dlsym(driver, "cuCtxSetCurrent"));
    NEED(create = (int (*)(void**, unsigned, int))dlsym(driver, "cuCtxCreate_v2"));
    NEED(allocate = (int (*)(device_pointer*, size_t))dlsym(driver, "cuMemAlloc_v2"));
    NEED(release = (int (*)(device_pointer))dlsym(driver, "cuMemFree_v2"));
    NEED(to_gpu = (int (*)(device_pointer, const void*, size_t))dlsym(driver, "cuMemcpyHtoD_v2"));
    NEED(from_gpu = (int (*)(void*, device_pointer, size_t))dlsym(driver, "cuMemcpyDtoH_v2"));
    NEED(describe = (int (*)(void*, device_pointer, size_t, int, unsigned long long))dlsym(
             driver, "cuMemGetHandleForAddressRange"));
    NEED(init(0) == 0 && retain(&of_gpu, 0) == 0 && set_current(of_gpu) == 0);
}

/* Memory of the host and of the GPU, and a queue pair. */
struct side {
    struct ibv_context* context;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_qp* qp;
    struct ibv_mr *of_host, *of_gpu;
    union ibv_gid gid;
    char* host;
    device_pointer gpu;
};
static struct side a, b;
static char seen[bytes], wanted[bytes];

static void fill(char* to, size_t count, unsigned seed)
{
    for (size_t at = 0; at < count; ++at)
        to[at] = (char)(at * 31 + at / 255 + seed);
}

static void put(struct side* at, unsigned seed)
{
    fill(wanted, bytes, seed);
    NEED(to_gpu(at->gpu, wanted, bytes) == 0);
}

/* The GPU's bytes of a side are those that fill() makes. */
static void expect_gpu(const char* what, struct side* at, size_t from, size_t count, unsigned seed)
{
    NEED(from_gpu(seen, at->gpu + from, count) == 0);
    fill(wanted, count, seed);
    CHECK(what, 0, memcmp(seen, wanted, count));
}

static void expect_host(const char* what, const char* at, size_t count, unsigned seed)
{
    fill(wanted, count, seed);
    CHECK(what, 0, memcmp(at, wanted, count));
}

static void open_side(struct side* of, struct ibv_device* device)
{
    NEED(of->context = ibv_open_device(device));
    NEED(of->pd = ibv_alloc_pd(of->context));
    NEED(of->cq = ibv_create_cq(of->context, 4 * entries, NULL, NULL, 0));
    NEED(ibv_query_gid(of->context, 1, 0, &of->gid) == 0);
    NEED(of->host = aligned_alloc(4096, bytes));
    NEED(allocate(&of->gpu, bytes) == 0);
    NEED(of->of_host = ibv_reg_mr(of->pd, of->host, bytes, may_do_all));
    NEED(of->of_gpu = ibv_reg_mr(of->pd, (void*)of->gpu, bytes, may_do_all));
    put(of, 1);
    memset(of->host, 0, bytes);
}

static void make_pair(struct side* of, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr asked = {
        .send_cq = of->cq,
        .recv_cq = of->cq,
        .cap = {.max_send_wr = entries,
                .max_recv_wr = entries,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64},
        .qp_type = type,
    };
    NEED(of->qp = ibv_create_qp(of->pd, &asked));
}

static void join(struct side* of, struct side* peer)
{
    struct ibv_qp_attr to = rtr_to(peer->qp->qp_num);
    to_init(of->qp, may_do_all);
    to.ah_attr.grh.dgid = peer->gid;
    CHECK("INIT to RTR", 0, ibv_modify_qp(of->qp, &to, of->qp->qp_type == IBV_QPT_RC ? rtr_mask_rc : rtr_mask));
}

static void connect_sides(enum ibv_qp_type type)
{
    make_pair(&a, type);
    make_pair(&b, type);
    join(&a, &b);
    join(&b, &a);
    to_rts(a.qp);
    to_rts(b.qp);
}

static void disconnect(void)
{
    struct ibv_wc left;
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(a.qp) | ibv_destroy_qp(b.qp));
    while (ibv_poll_cq(a.cq, 1, &left) + ibv_poll_cq(b.cq, 1, &left) > 0)
        ;
}

static void begin(void)
{
    int count = 0;
    struct ibv_device** all = ibv_get_device_list(&count);
    NEED(all && count);
    open_driver();
    open_side(&a, all[0]);
    open_side(&b, all[count > 1]);
    ibv_free_device_list(all);
}

static void close_side(struct side* of)
{
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(of->of_host) | (of->of_gpu ? ibv_dereg_mr(of->of_gpu) : 0));
    CHECK("ibv_destroy_cq", 0, ibv_destroy_cq(of->cq));
    CHECK("ibv_dealloc_pd", 0, ibv_dealloc_pd(of->pd));
    CHECK("ibv_close_device", 0, ibv_close_device(of->context));
    if (of->gpu)
        CHECK("cuMemFree", 0, release(of->gpu));
}

static struct ibv_sge on_gpu(const struct side* of, size_t at, size_t count)
{
    return (struct ibv_sge){.addr = of->gpu + at, .length = (uint32_t)count, .lkey = of->of_gpu->lkey};
}

static struct ibv_sge on_host(const struct side* of, size_t at, size_t count)
{
    return (struct ibv_sge){.addr = (uintptr_t)of->host + at, .length = (uint32_t)count, .lkey = of->of_host->lkey};
}

static int post_list(enum ibv_wr_opcode opcode, struct ibv_sge* list, int pieces, uint64_t to, uint32_t rkey,
                     unsigned flags)
{
    struct ibv_send_wr entry = {.sg_list = list, .num_sge = pieces, .opcode = opcode, .imm_data = 7}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED | flags;
    entry.wr.rdma.remote_addr = to;
    entry.wr.rdma.rkey = rkey;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        entry.wr.atomic.remote_addr = to;
        entry.wr.atomic.rkey = rkey;
        entry.wr.atomic.compare_add = 1;
    }
    return ibv_post_send(a.qp, &entry, &bad);
}

static enum ibv_wc_status run(enum ibv_wr_opcode opcode, struct ibv_sge piece, uint64_t to, uint32_t rkey)
{
    CHECK("post", 0, post_list(opcode, &piece, 1, to, rkey, 0));
    return next_completion(a.cq).status;
}

static void receive_into(struct ibv_sge* list, int pieces)
{
    struct ibv_recv_wr entry = {.sg_list = list, .num_sge = pieces}, *bad;
    CHECK("post receive", 0, ibv_post_recv(b.qp, &entry, &bad));
}

static void received(const char* what, enum ibv_wc_opcode opcode, size_t count)
{
    const struct ibv_wc got = next_completion(b.cq);
    CHECK(what, IBV_WC_SUCCESS, got.status);
    CHECK(what, opcode, got.opcode);
    CHECK(what, count, got.byte_len);
}

/* Of all kinds of memory at both ends, in messages of many packets and of one. */
static void move(size_t count, unsigned seed)
{
    const uint64_t gpu = b.gpu + 512, host = (uintptr_t)b.host + 512;
    put(&a, seed);
    CHECK("WRITE from GPU to GPU", IBV_WC_SUCCESS, run(IBV_WR_RDMA_WRITE, on_gpu(&a, 0, count), gpu, b.of_gpu->rkey));
    expect_gpu("WRITE from GPU to GPU", &b, 512, count, seed);
    CHECK("WRITE from GPU", IBV_WC_SUCCESS, run(IBV_WR_RDMA_WRITE, on_gpu(&a, 0, count), host, b.of_host->rkey));
    expect_host("WRITE from GPU", b.host + 512, count, seed);
    fill(a.host, count, seed + 1);
    CHECK("WRITE to GPU", IBV_WC_SUCCESS, run(IBV_WR_RDMA_WRITE, on_host(&a, 0, count), gpu, b.of_gpu->rkey));
    expect_gpu("WRITE to GPU", &b, 512, count, seed + 1);
    put(&b, seed + 2);
    CHECK("READ from GPU to GPU", IBV_WC_SUCCESS, run(IBV_WR_RDMA_READ, on_gpu(&a, 64, count), b.gpu, b.of_gpu->rkey));
    expect_gpu("READ from GPU to GPU", &a, 64, count, seed + 2);
    CHECK("READ from GPU", IBV_WC_SUCCESS, run(IBV_WR_RDMA_READ, on_host(&a, 64, count), b.gpu, b.of_gpu->rkey));
    expect_host("READ from GPU", a.host + 64, count, seed + 2);
    fill(b.host, count, seed + 3);
    CHECK("READ to GPU", IBV_WC_SUCCESS,
          run(IBV_WR_RDMA_READ, on_gpu(&a, 64, count), (uintptr_t)b.host, b.of_host->rkey));
    expect_gpu("READ to GPU", &a, 64, count, seed + 3);
}

static void send_some(size_t count, unsigned seed)
{
    struct ibv_sge into = on_gpu(&b, 100, count), nothing = on_gpu(&b, 0, 0);
    put(&a, seed);
    receive_into(&into, 1);
    CHECK("SEND", IBV_WC_SUCCESS, run(IBV_WR_SEND_WITH_IMM, on_gpu(&a, 0, count), 0, 0));
    received("SEND", IBV_WC_RECV, count);
    expect_gpu("SEND", &b, 100, count, seed);
    receive_into(&nothing, 0);
    CHECK("WRITE with immediate", IBV_WC_SUCCESS,
          run(IBV_WR_RDMA_WRITE_WITH_IMM, on_gpu(&a, 0, count), b.gpu + 3, b.of_gpu->rkey));
    received("WRITE with immediate", IBV_WC_RECV_RDMA_WITH_IMM, count);
    expect_gpu("WRITE with immediate", &b, 3, count, seed);
}

/* Pieces of the host and of the GPU in one list, at both ends. */
static void mix(void)
{
    struct ibv_sge from[] = {on_host(&a, 5, 777), on_gpu(&a, 9, 3000), on_host(&a, 900, 1), on_gpu(&a, 5000, 40)};
    struct ibv_sge into[] = {on_gpu(&b, 1, 1000), on_host(&b, 2, 1000), on_gpu(&b, 70000, 2000)};
    char sent[3818];
    put(&a, 40);
    memcpy(sent + 777, wanted + 9, 3000);
    memcpy(sent + 3778, wanted + 5000, 40);
    fill(a.host, 4096, 41);
    memcpy(sent, a.host + 5, 777);
    sent[3777] = a.host[900];
    receive_into(into, 3);
    CHECK("post", 0, post_list(IBV_WR_SEND, from, 4, 0, 0, 0));
    CHECK("mixed SEND", IBV_WC_SUCCESS, next_completion(a.cq).status);
    received("mixed SEND", IBV_WC_RECV, sizeof sent);
    NEED(from_gpu(seen, b.gpu + 1, 1000) == 0 && from_gpu(seen + 2000, b.gpu + 70000, 1818) == 0);
    memcpy(seen + 1000, b.host + 2, 1000);
    CHECK("mixed SEND", 0, memcmp(seen, sent, sizeof sent));
    struct ibv_sge small = {.addr = (uintptr_t)sent, .length = 40};
    CHECK("post", 0, post_list(IBV_WR_RDMA_WRITE, &small, 1, b.gpu + 11, b.of_gpu->rkey, IBV_SEND_INLINE));
    CHECK("inline WRITE", IBV_WC_SUCCESS, next_completion(a.cq).status);
    NEED(from_gpu(seen, b.gpu + 11, 40) == 0);
    CHECK("inline WRITE", 0, memcmp(seen, sent, 40));
}

/* Many messages under way, and a flag in host memory behind them, which the program polls. */
static void crowd(void)
{
    volatile unsigned* const flag = (volatile unsigned*)b.host;
    for (unsigned round = 1; round <= 20; ++round) {
        put(&a, 50 + round);
        fill(a.host, 64, 0);
        memcpy(a.host, &round, sizeof round);
        for (unsigned each = 0; each < entries - 1; ++each) {
            struct ibv_sge piece = on_gpu(&a, each * 6000, 6000);
            CHECK("post", 0, post_list(IBV_WR_RDMA_WRITE, &piece, 1, b.gpu + each * 6000, b.of_gpu->rkey, 0));
        }
        struct ibv_sge last = on_host(&a, 0, sizeof round);
        CHECK("post", 0, post_list(IBV_WR_RDMA_WRITE, &last, 1, (uintptr_t)b.host, b.of_host->rkey, 0));
        const double end = seconds() + patience();
        while (*flag != round && seconds() < end)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        expect_gpu("bytes in front of a flag", &b, 0, (entries - 1) * 6000, 50 + round);
        for (unsigned each = 0; each < entries; ++each)
            CHECK("each of many", IBV_WC_SUCCESS, next_completion(a.cq).status);
    }
}

static void of_reliable(void)
{
    connect_sides(IBV_QPT_RC);
    move(100, 10);
    move(300001, 20);
    send_some(77, 30);
    send_some(200000, 31);
    mix();
    crowd();
    disconnect();
}

static void of_unreliable(void)
{
    connect_sides(IBV_QPT_UC);
    struct ibv_sge into = on_gpu(&b, 0, half);
    put(&a, 60);
    CHECK("UC WRITE", IBV_WC_SUCCESS, run(IBV_WR_RDMA_WRITE, on_gpu(&a, 0, 100000), b.gpu, b.of_gpu->rkey));
    put(&a, 61); /* a completed entry needs its bytes no more */
    receive_into(&into, 1);
    CHECK("UC SEND", IBV_WC_SUCCESS, run(IBV_WR_SEND, on_gpu(&a, 0, 5000), 0, 0));
    received("UC SEND", IBV_WC_RECV, 5000);
    expect_gpu("UC SEND", &b, 0, 5000, 61);
    fill(wanted, 100000, 60);
    NEED(from_gpu(seen, b.gpu, 100000) == 0);
    CHECK("UC WRITE", 0, memcmp(seen + 5000, wanted + 5000, 95000));
    disconnect();
}

static void of_datagrams(void)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5};
    struct ibv_ah_attr at = {.is_global = 1, .port_num = 1, .grh = {.dgid = b.gid, .hop_limit = 9}};
    struct ibv_sge into = on_gpu(&b, 0, 2000), piece = on_gpu(&a, 33, 900);
    make_pair(&a, IBV_QPT_UD);
    make_pair(&b, IBV_QPT_UD);
    for (struct side* each = &a;; each = &b) {
        to.qp_state = IBV_QPS_INIT;
        CHECK("INIT", 0, ibv_modify_qp(each->qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
        CHECK("RTR", 0, to_state(each->qp, IBV_QPS_RTR));
        to.qp_state = IBV_QPS_RTS;
        CHECK("RTS", 0, ibv_modify_qp(each->qp, &to, IBV_QP_STATE | IBV_QP_SQ_PSN));
        if (each == &b)
            break;
    }
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    NEED(entry.wr.ud.ah = ibv_create_ah(a.pd, &at));
    entry.wr.ud.remote_qpn = b.qp->qp_num;
    entry.wr.ud.remote_qkey = 5;
    put(&a, 70);
    receive_into(&into, 1);
    CHECK("post", 0, ibv_post_send(a.qp, &entry, &bad));
    CHECK("datagram", IBV_WC_SUCCESS, next_completion(a.cq).status);
    received("datagram", IBV_WC_RECV, 940);
    NEED(from_gpu(seen, b.gpu + 40, 900) == 0);
    fill(wanted, bytes, 70);
    CHECK("datagram", 0, memcmp(seen, wanted + 33, 900));
    CHECK("ibv_destroy_ah", 0, ibv_destroy_ah(entry.wr.ud.ah));
    disconnect();
}

/* One operation of a new connection, from or to `piece` and the other side's GPU. */
static void ends_with(const char* what, enum ibv_wc_status status, enum ibv_wr_opcode opcode, struct ibv_sge piece)
{
    connect_sides(IBV_QPT_RC);
    CHECK(what, status, run(opcode, piece, b.gpu, b.of_gpu->rkey));
    disconnect();
}

static void of_atomics(void)
{
    ends_with("atomic on the GPU", IBV_WC_REM_ACCESS_ERR, IBV_WR_ATOMIC_FETCH_AND_ADD, on_host(&a, 0, 8));
    connect_sides(IBV_QPT_RC);
    uint64_t before = 41, got = 0;
    memcpy(b.host, &before, sizeof before);
    CHECK("atomic whose result goes to the GPU", IBV_WC_SUCCESS,
          run(IBV_WR_ATOMIC_FETCH_AND_ADD, on_gpu(&a, 8, 8), (uintptr_t)b.host, b.of_host->rkey));
    NEED(from_gpu(&got, a.gpu + 8, 8) == 0);
    CHECK("result of an atomic", 41, got);
    disconnect();
}

static void of_loss(void)
{
    connect_sides(IBV_QPT_RC);
    for (unsigned round = 0; round < 6; ++round) {
        move(200000, 80 + round);
        send_some(30000, 90 + round);
    }
    disconnect();
}

/* Memory that the program frees under its key fails who uses it, and nobody else. */
static void of_freed(void)
{
    connect_sides(IBV_QPT_RC);
    move(5000, 2);
    CHECK("cuMemFree", 0, release(b.gpu));
    CHECK("WRITE to freed memory", IBV_WC_REM_ACCESS_ERR,
          run(IBV_WR_RDMA_WRITE, on_host(&a, 0, 9000), b.gpu, b.of_gpu->rkey));
    disconnect();
    ends_with("READ of freed memory", IBV_WC_REM_ACCESS_ERR, IBV_WR_RDMA_READ, on_host(&a, 0, 9000));
    CHECK("ibv_dereg_mr of freed memory", 0, ibv_dereg_mr(b.of_gpu));
    NEED(allocate(&b.gpu, bytes) == 0);
    NEED(b.of_gpu = ibv_reg_mr(b.pd, (void*)b.gpu, bytes, may_do_all));
    CHECK("cuMemFree", 0, release(a.gpu));
    ends_with("WRITE from freed memory", IBV_WC_LOC_PROT_ERR, IBV_WR_RDMA_WRITE, on_gpu(&a, 0, 9000));
    ends_with("READ into freed memory", IBV_WC_LOC_PROT_ERR, IBV_WR_RDMA_READ, on_gpu(&a, 0, 9000));
    CHECK("ibv_dereg_mr of freed memory", 0, ibv_dereg_mr(a.of_gpu));
    NEED(allocate(&a.gpu, bytes) == 0);
    NEED(a.of_gpu = ibv_reg_mr(a.pd, (void*)a.gpu, bytes, may_do_all));
    connect_sides(IBV_QPT_RC);
    move(5000, 3);
    disconnect();
    errno = 0;
    CHECK("more than is allocated", 1, ibv_reg_mr(a.pd, (void*)(a.gpu + 4096), bytes, all_rights) == NULL);
    CHECK("more than is allocated", EINVAL, errno);
}

static struct ibv_mr* of_buffer(struct side* of, int descriptor, uint64_t offset, size_t count, uint64_t iova)
{
    return ibv_reg_dmabuf_mr(of->pd, offset, count, iova, descriptor, may_do_all);
}

/* Memory of a context of the program's own, as perftest makes it. */
static void of_context(void)
{
    void* own = NULL;
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(b.of_gpu));
    NEED(release(b.gpu) == 0 && create(&own, 0, 0) == 0 && allocate(&b.gpu, bytes) == 0);
    NEED(b.of_gpu = ibv_reg_mr(b.pd, (void*)b.gpu, bytes, may_do_all));
    put(&b, 4);
    connect_sides(IBV_QPT_RC);
    move(100000, 5);
    send_some(70000, 6);
    disconnect();
}

#define REFUSED(number, ...) \
    do { \
        errno = 0; \
        CHECK("refused dma-buf", 1, of_buffer(__VA_ARGS__) == NULL); \
        CHECK("errno of a dma-buf", number, errno); \
    } while (0)

/* A GPU's memory by a dma-buf, and pages of the host by a descriptor that can be mapped. */
static void of_dma_buf(void)
{
    int exported = -1, pages = memfd_create("pages", 0), nothing[2];
    NEED(pages >= 0 && ftruncate(pages, half) == 0 && pipe(nothing) == 0);
    NEED(describe(&exported, b.gpu, bytes, 1, 0) == 0);
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(b.of_gpu) | ibv_dereg_mr(b.of_host));
    REFUSED(EBADF, &b, -1, 0, 4096, 0); /* as NCCL asks whether there are dma-bufs */
    REFUSED(EINVAL, &b, nothing[0], 0, 4096, 0);
    REFUSED(EINVAL, &b, exported, 4096, bytes, b.gpu + 4096);
    REFUSED(EINVAL, &b, exported, 4, 4096, b.gpu);
    REFUSED(EOPNOTSUPP, &b, exported, 0, 4096, 0);
    NEED(b.of_gpu = of_buffer(&b, exported, 0, bytes, b.gpu));
    CHECK("close", 0, close(exported)); /* the registration keeps the memory */
    NEED(b.of_host = of_buffer(&b, pages, 4096, half - 4096, 0x7000));
    connect_sides(IBV_QPT_RC);
    put(&a, 12);
    CHECK("WRITE to a dma-buf", IBV_WC_SUCCESS,
          run(IBV_WR_RDMA_WRITE, on_gpu(&a, 0, 100000), b.gpu + 8000, b.of_gpu->rkey));
    expect_gpu("WRITE to a dma-buf", &b, 8000, 100000, 12);
    put(&b, 13);
    CHECK("READ of a dma-buf", IBV_WC_SUCCESS,
          run(IBV_WR_RDMA_READ, on_gpu(&a, 0, 100000), b.gpu, b.of_gpu->rkey));
    expect_gpu("READ of a dma-buf", &a, 0, 100000, 13);
    CHECK("WRITE to pages", IBV_WC_SUCCESS,
          run(IBV_WR_RDMA_WRITE, on_gpu(&a, 0, 5000), 0x7000 + 10, b.of_host->rkey));
    CHECK("pages", 5000, pread(pages, seen, 5000, 4096 + 10));
    expect_host("WRITE to pages", seen, 5000, 13);
    disconnect();
    close(pages);
}

/* The CPU dies of the address, so all that went through it above were copies. */
static void of_touch(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        _exit(*(volatile char*)a.gpu & 0);
    }
    NEED(waitpid(child, &status, 0) == child);
    CHECK("killed by a signal", 1, WIFSIGNALED(status));
}

int main(int count, char** arguments)
{
    const struct {
        const char* name;
        void (*run)(void);
    } cases[] = {{"reliable", of_reliable}, {"unreliable", of_unreliable}, {"datagrams", of_datagrams},
                 {"atomics", of_atomics},   {"loss", of_loss},             {"freed", of_freed},
                 {"touch", of_touch},       {"dma_buf", of_dma_buf},
                 {"context", of_context}};
    begin();
    for (size_t each = 0; each < sizeof cases / sizeof *cases; ++each)
        if (count > 1 && strcmp(arguments[1], cases[each].name) == 0)
            cases[each].run();
    close_side(&a);
    close_side(&b);
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
