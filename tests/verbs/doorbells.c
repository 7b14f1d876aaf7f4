/* How soon the NIC hears of an entry when many queue pairs of a process sleep, for tests/scripts/run_doorbells.sh: this
 * process posts, and a child, which it starts before either opens a device, is the peer.
 *
 *   doorbells PAIRS [ROUNDS]     prints the microseconds from ibv_post_send() to the completion, and the processor time
 *   of
 *                                a second in which nobody posts
 *   doorbells words BYTES        where libmlx5 stores its doorbells, 8 or 64 bytes, and whether the NIC takes them
 */
#define _GNU_SOURCE
#include "ends.h"

#include <infiniband/mlx5dv.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most_pairs = 8192, pages = 64, page_bytes = 4096, half_bytes = 256 };

static struct ibv_cq* cq;
static struct ibv_qp* qps[most_pairs];

struct report {
    union ibv_gid gid;
    uint32_t rkey, numbers[most_pairs];
    uint64_t address;
};
static struct report ours, theirs;

static void tell(int to, const void* bytes, size_t count)
{
    for (size_t done = 0; done != count;) {
        const ssize_t more = write(to, (const char*)bytes + done, count - done);
        NEED(more > 0);
        done += (size_t)more;
    }
}

static void hear(int from, void* bytes, size_t count)
{
    for (size_t done = 0; done != count;) {
        const ssize_t more = read(from, (char*)bytes + done, count - done);
        NEED(more > 0);
        done += (size_t)more;
    }
}

static struct ibv_qp* make_small(void)
{
    struct ibv_qp_init_attr wanted = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 32},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp* made = ibv_create_qp(pd, &wanted);
    NEED(made);
    return made;
}

static void connect_all(int peer, unsigned pairs)
{
    open_device();
    NEED(cq = ibv_create_cq(context, 4096, NULL, NULL, 0));
    for (unsigned each = 0; each < pairs; ++each) {
        qps[each] = make_small();
        ours.numbers[each] = qps[each]->qp_num;
    }
    ours.gid = gid;
    ours.rkey = mr->rkey;
    ours.address = (uintptr_t)memory;
    tell(peer, &ours, sizeof ours);
    hear(peer, &theirs, sizeof theirs);
    gid = theirs.gid;
    for (unsigned each = 0; each < pairs; ++each) {
        struct ibv_qp_attr with = rtr_to(theirs.numbers[each]);
        to_init(qps[each], all_rights);
        CHECK("INIT to RTR", 0, ibv_modify_qp(qps[each], &with, rtr_mask_rc));
        to_rts(qps[each]);
    }
    char ready = 1;
    tell(peer, &ready, 1);
    hear(peer, &ready, 1);
}

/* Until it has completed, in seconds. */
static double write_by(struct ibv_qp* qp, unsigned flags)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey};
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    struct ibv_wc got;
    entry.send_flags = IBV_SEND_SIGNALED | flags;
    entry.wr.rdma.remote_addr = theirs.address + memory_bytes / 2;
    entry.wr.rdma.rkey = theirs.rkey;
    const double begin = seconds();
    CHECK("post", 0, ibv_post_send(qp, &entry, &bad));
    while (ibv_poll_cq(cq, 1, &got) == 0 && seconds() < begin + patience())
        sched_yield();
    CHECK("status", IBV_WC_SUCCESS, got.status);
    CHECK("qp_num", qp->qp_num, got.qp_num);
    return seconds() - begin;
}

static void rest(double how_long)
{
    const struct timespec time = {.tv_sec = (time_t)how_long, .tv_nsec = (long)(1e9 * (how_long - (long)how_long))};
    nanosleep(&time, NULL);
}

static double processor_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int by_size(const void* left, const void* right)
{
    const double a = *(const double*)left, b = *(const double*)right;
    return (a > b) - (a < b);
}

static void measure(unsigned pairs, unsigned rounds)
{
    double* took = calloc(rounds, sizeof *took);
    NEED(took);
    rest(1); // all fall asleep
    const double before = processor_seconds(), begin = seconds();
    rest(1);
    const double idle = (processor_seconds() - before) / (seconds() - begin);
    unsigned which = 1;
    for (unsigned round = 0; round < rounds; ++round) {
        which = which * 1103515245u + 12345u;
        took[round] = 1e6 * write_by(qps[(which >> 8) % pairs], 0);
        rest(0.003 + 0.000001 * (double)((which >> 4) % 1000));
    }
    qsort(took, rounds, sizeof *took, by_size);
    printf("%u pairs: 10%% %.0f us, median %.0f us, 90%% %.0f us, most %.0f us; idle: %.1f%% of a core\n", pairs,
           took[rounds / 10], took[rounds / 2], took[rounds * 9 / 10], took[rounds - 1], 100 * idle);
    free(took);
}

static char* register_of(struct ibv_qp* qp, uint32_t bytes)
{
    struct mlx5dv_qp known = {0};
    struct mlx5dv_obj asked = {.qp = {.in = qp, .out = &known}};
    CHECK("mlx5dv_init_obj", 0, mlx5dv_init_obj(&asked, MLX5DV_OBJ_QP));
    const int first_page = qp == qps[0] || qp == qps[pages]; /* where libmlx5 stores 8 bytes in any case */
    CHECK("bytes of a half", bytes == 64 && !first_page ? half_bytes : 0, known.bf.size);
    return known.bf.reg;
}

static int is_zero(const volatile char* from, unsigned bytes)
{
    for (unsigned each = 0; each < bytes; ++each)
        if (from[each] != 0)
            return 0;
    return 1;
}

/* The first queue pairs have pages of their own, and the others share them. */
static void look_at_pages(uint32_t bytes)
{
    for (unsigned each = 0; each < 2 * pages; ++each)
        for (unsigned other = 0; other < each; ++other)
            CHECK("shares a page", each == other + pages,
                  (uintptr_t)register_of(qps[each], bytes) / page_bytes ==
                      (uintptr_t)register_of(qps[other], bytes) / page_bytes);
}

/* UCX rings both halves in turn, also those of 8-byte doorbells. */
static void look_at_words(uint32_t bytes)
{
    struct ibv_qp* const qp = qps[1];
    char* const halves[] = {register_of(qp, bytes), register_of(qp, bytes) + half_bytes};
    look_at_pages(bytes);
    for (unsigned each = 0; each < 4; ++each)
        write_by(qp, IBV_SEND_INLINE);
    for (unsigned half = 0; half < 2; ++half)
        __atomic_store_n((uint64_t*)(void*)halves[half], 1, __ATOMIC_RELEASE);
    for (unsigned half = 0; half < 2; ++half) {
        const double end = seconds() + patience();
        while (!is_zero(halves[half], 8) && seconds() < end)
            rest(0.001);
        CHECK("the NIC has taken the doorbell", 1, is_zero(halves[half], 8));
        CHECK("only the first 8 bytes were stored", bytes == 8, is_zero(halves[half] + 8, 56));
    }
}

int main(int count, char** arguments)
{
    int ends[2];
    const int words = count == 3 && strcmp(arguments[1], "words") == 0;
    const unsigned pairs = words ? 2 * pages : count > 1 ? (unsigned)atoi(arguments[1]) : 0;
    const unsigned rounds = count > 2 ? (unsigned)atoi(arguments[2]) : 500;
    NEED(pairs > 0 && pairs <= most_pairs && rounds > 0);
    NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const pid_t peer = fork();
    NEED(peer >= 0);
    if (peer == 0) {
        char end;
        connect_all(ends[1], pairs);
        hear(ends[1], &end, 1);
        return failed_checks != 0;
    }
    connect_all(ends[0], pairs);
    if (words)
        look_at_words((uint32_t)atoi(arguments[2]));
    else
        measure(pairs, rounds);
    char end = 1;
    int how = 0;
    tell(ends[0], &end, 1);
    NEED(waitpid(peer, &how, 0) == peer);
    CHECK("the peer", 0, how);
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
