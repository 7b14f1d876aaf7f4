/* Faults within one process, for tests/scripts/run_faults.sh. The argument names one. */
#define _GNU_SOURCE
#define ENDS_OF __thread
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

static void traffic(void)
{
    struct end a, b;
    make_end(&a, 64, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    memset(memory, 0x5a, memory_bytes / 2);
    memset(memory + memory_bytes / 2, 0, memory_bytes / 2);
    CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 4096, mr->rkey, 1));
    CHECK("a write", IBV_WC_SUCCESS, next_completion(a.cq).status);
    CHECK("its data", 0, memcmp(memory, memory + memory_bytes / 2, 4096));
    end_end(&a);
    end_end(&b);
}

static sigjmp_buf resume;
static volatile int faults_seen;

static void on_fault(int number)
{
    ++faults_seen;
    siglongjmp(resume, number);
}

static void expect_own_fault(void)
{
    const int before = faults_seen;
    volatile char* const nowhere = (char*)16;
    if (sigsetjmp(resume, 1) == 0)
        *nowhere = 1;
    CHECK("the program's own handler", before + 1, faults_seen);
}

/* Memory that goes under a key, at the sender's end or the peer's. */
static void unmapped_once(int remote, enum ibv_wc_status expected)
{
    struct end a, b;
    make_end(&a, 64, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    char* const gone = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr* const region = ibv_reg_mr(pd, gone, 65536, all_rights);
    NEED(region);
    memset(gone, 1, 65536);
    munmap(gone, 65536);
    struct ibv_sge piece = {.addr = (uintptr_t)(remote ? memory : gone),
                            .length = 8192,
                            .lkey = remote ? mr->lkey : region->lkey};
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    entry.wr.rdma.remote_addr = (uintptr_t)(remote ? gone : memory);
    entry.wr.rdma.rkey = remote ? region->rkey : mr->rkey;
    CHECK("post", 0, ibv_post_send(a.qp, &entry, &bad));
    CHECK("the completion", expected, next_completion(a.cq).status);
    CHECK("the state", IBV_QPS_ERR, state_of(a.qp));
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(region));
    end_end(&a);
    end_end(&b);
}

static void unmapped(void)
{
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    open_device();
    unmapped_once(0, IBV_WC_LOC_PROT_ERR);
    expect_own_fault();
    signal(SIGSEGV, on_fault); // this time behind the engine's
    unmapped_once(0, IBV_WC_LOC_PROT_ERR);
    unmapped_once(1, IBV_WC_REM_ACCESS_ERR);
    expect_own_fault();
    CHECK("faults", 2, faults_seen);
    traffic();
    close_device();
}

static void expect_child(const char* what, pid_t child)
{
    int status = -1;
    const double end = seconds() + patience();
    pid_t got;
    while ((got = waitpid(child, &status, WNOHANG)) == 0 && seconds() < end)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (got == 0)
        kill(child, SIGKILL);
    CHECK(what, 0, got == 0 ? -1 : status);
}

static void child_uses(void)
{
    struct ibv_port_attr port;
    struct ibv_wc got;
    struct ibv_cq* const cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    CHECK("a queue of the parent's engine", 1, cq == NULL);
    CHECK("a region of the parent's engine", 1, ibv_reg_mr(pd, memory, 4096, 0) == NULL);
    CHECK("a query", 1, ibv_query_port(context, 1, &port) != 0);
    (void)got;
    CHECK("closing", 0, close(context->cmd_fd));
    exit(failed_checks != 0);
}

static void forks(void)
{
    open_device();
    traffic();
    pid_t child = fork();
    if (child == 0)
        exit(0); // with all that runs at an exit
    expect_child("a child that exits", child);
    traffic();
    if ((child = fork()) == 0)
        child_uses();
    expect_child("a child that uses what it has", child);
    traffic();
    if ((child = fork()) == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    expect_child("a child that becomes another program", child);
    if ((child = vfork()) == 0) {
        execlp("true", "true", NULL);
        _exit(9);
    }
    expect_child("the same by vfork()", child);
    traffic();
    close_device();
}

static int entries_of(const char* folder)
{
    DIR* const all = opendir(folder);
    int count = 0;
    while (readdir(all))
        ++count;
    closedir(all);
    return count;
}

static void early(void)
{
    open_device();
    traffic();
    struct ibv_context* const before = context;
    struct ibv_pd* const domain = pd;
    CHECK("close the node", 0, close(context->cmd_fd));
    CHECK("a domain behind it", 1, ibv_alloc_pd(context) == NULL);
    CHECK("a destroy behind it", 1, ibv_dealloc_pd(domain) != 0);
    open_device();
    traffic();
    CHECK("close its events", 0, close(context->async_fd));
    traffic();
    (void)before;
}

/* In flight and open at the end of main(). */
static void leave_open(void)
{
    struct end a, b;
    open_device();
    make_end(&a, 64, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    NEED(ibv_create_comp_channel(context));
    for (uint64_t each = 0; each < 32; ++each)
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, memory_bytes / 2, mr->rkey, each));
}

static void becomes_another(void)
{
    leave_open();
    printf("%d checks failed\n", failed_checks);
    fflush(stdout);
    execlp("true", "true", NULL);
}

static long resident_kib(void)
{
    long pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    NEED(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * 4;
}

static void cycle_pd(void)
{
    struct ibv_pd* const made = ibv_alloc_pd(context);
    NEED(made);
    CHECK("ibv_dealloc_pd", 0, ibv_dealloc_pd(made));
}
static void cycle_mr(void)
{
    struct ibv_mr* const made = ibv_reg_mr(pd, memory, sizeof memory, all_rights);
    NEED(made);
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(made));
}
static void cycle_cq(void)
{
    struct ibv_cq* const made = ibv_create_cq(context, 16, NULL, NULL, 0);
    NEED(made);
    CHECK("ibv_destroy_cq", 0, ibv_destroy_cq(made));
}
static void cycle_channel(void)
{
    struct ibv_comp_channel* const made = ibv_create_comp_channel(context);
    NEED(made);
    struct ibv_cq* const cq = ibv_create_cq(context, 16, NULL, made, 0);
    NEED(cq);
    CHECK("ibv_destroy_cq", 0, ibv_destroy_cq(cq));
    CHECK("ibv_destroy_comp_channel", 0, ibv_destroy_comp_channel(made));
}
static void cycle_qp(void)
{
    static ENDS_OF struct ibv_cq* cq;
    if (!cq)
        NEED(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
    struct ibv_qp* const made = make_qp(cq, IBV_QPT_RC);
    to_init(made, all_rights);
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(made));
}
static void cycle_connected(void)
{
    static ENDS_OF struct end a, b;
    if (!a.cq) {
        make_end(&a, 64, IBV_QPT_RC);
        make_end(&b, 64, IBV_QPT_RC);
    } else {
        a.qp = make_qp(a.cq, IBV_QPT_RC);
        b.qp = make_qp(b.cq, IBV_QPT_RC);
    }
    connect_ends(a.qp, b.qp, all_rights);
    CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    CHECK("a write", IBV_WC_SUCCESS, next_completion(a.cq).status);
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(a.qp));
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(b.qp));
}
static void cycle_context(void)
{
    struct ibv_context* const made = ibv_open_device(context->device);
    NEED(made);
    struct ibv_pd* const in = ibv_alloc_pd(made);
    NEED(in);
    CHECK("ibv_dealloc_pd", 0, ibv_dealloc_pd(in));
    CHECK("ibv_close_device", 0, ibv_close_device(made));
}

/* `count` times, or until `end`. Returns how often that was. */
static int repeat(void (*once)(void), int count, double end)
{
    int done = 0;

    for (; done < count && (done < 50 || seconds() < end); ++done)
        once();
    return done;
}

/*
 * Nothing grows. An engine may keep some memory for what comes next, so the first cycles are not counted. Each kind
 * takes at most a tenth of the time there is, because on a busy machine a cycle waits for the engine.
 */
static void cycles(void)
{
    enum { most_kib_more = 1024 };
    const struct {
        const char* name;
        void (*once)(void);
        int count;
    } kinds[] = {{"domains", cycle_pd, 3000},       {"regions", cycle_mr, 3000},
                 {"completion queues", cycle_cq, 3000}, {"channels", cycle_channel, 3000},
                 {"queue pairs", cycle_qp, 3000},   {"connected queue pairs", cycle_connected, 1000},
                 {"contexts", cycle_context, 500}};
    open_device();
    traffic();
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; ++kind) {
        const double began = seconds();
        int done = repeat(kinds[kind].once, kinds[kind].count / 5, began + patience() / 50);
        const long before = resident_kib();
        const int open_before = entries_of("/proc/self/fd"), threads_before = entries_of("/proc/self/task");
        done += repeat(kinds[kind].once, kinds[kind].count, began + patience() / 10);
        const long more = resident_kib() - before;
        fprintf(stderr, "%s: %d cycles of %.1f us, %ld KiB more\n", kinds[kind].name, done,
                1e6 * (seconds() - began) / done, more);
        if (more > most_kib_more)
            CHECK(kinds[kind].name, 0, more);
        /* The engine hears of a channel's end a little later. */
        for (const double end = seconds() + patience(); entries_of("/proc/self/fd") > open_before && seconds() < end;)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (entries_of("/proc/self/fd") > open_before)
            CHECK("descriptors", open_before, entries_of("/proc/self/fd"));
        CHECK("threads", threads_before, entries_of("/proc/self/task"));
    }
}

static void* in_thread(void* failed)
{
    open_device();
    for (int each = 0; each < 20; ++each)
        traffic();
    for (int each = 0; each < 20; ++each) {
        cycle_pd();
        cycle_mr();
        cycle_channel();
        cycle_context();
    }
    close_device();
    return failed;
}

/* Several contexts in several threads at once. */
static void threads(void)
{
    pthread_t all[4];
    for (int each = 0; each < 4; ++each)
        NEED(pthread_create(&all[each], NULL, in_thread, NULL) == 0);
    for (int each = 0; each < 4; ++each)
        NEED(pthread_join(all[each], NULL) == 0);
}

int main(int count, char** arguments)
{
    const struct {
        const char* name;
        void (*run)(void);
    } all[] = {{"unmapped", unmapped}, {"forks", forks},   {"early", early},    {"leave_open", leave_open},
               {"exec", becomes_another}, {"cycles", cycles}, {"threads", threads}};
    for (size_t each = 0; each < sizeof all / sizeof *all; ++each)
        if (count == 2 && strcmp(arguments[1], all[each].name) == 0)
            all[each].run();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
