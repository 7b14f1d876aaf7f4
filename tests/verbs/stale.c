/* Memory that goes under a key and comes back, for tests/scripts/run_stale.sh. The argument names a case. It prints for
 * each transfer its status and where the bytes went. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

enum { size = 1 << 18, anonymous = MAP_PRIVATE | MAP_ANONYMOUS };

static struct end a, b; /* a accesses memory of b */

static void begin(void)
{
    open_device();
    make_end(&a, 64, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    memset(memory, 0x5a, sizeof memory);
}

static void end(void)
{
    end_end(&a);
    end_end(&b);
    close_device();
}

static void again(void) /* behind a failure */
{
    end_end(&a);
    end_end(&b);
    make_end(&a, 64, IBV_QPT_RC);
    make_end(&b, 64, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
}

static const char* name_of(enum ibv_wc_status status)
{
    switch (status) {
        case IBV_WC_SUCCESS: return "done";
        case IBV_WC_LOC_PROT_ERR: return "local protection error";
        case IBV_WC_REM_ACCESS_ERR: return "remote access error";
        default: return ibv_wc_status_str(status);
    }
}

/* One entry of a, with local memory and the peer's. */
static enum ibv_wc_status run(enum ibv_wr_opcode opcode, void* local, uint32_t lkey, void* remote, uint32_t rkey,
                              uint32_t bytes)
{
    struct ibv_sge piece = {.addr = (uintptr_t)local, .length = bytes, .lkey = lkey};
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = opcode}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    entry.wr.rdma.remote_addr = (uintptr_t)remote;
    entry.wr.rdma.rkey = rkey;
    CHECK("post", 0, ibv_post_send(a.qp, &entry, &bad));
    const enum ibv_wc_status status = next_completion(a.cq).status;
    if (status != IBV_WC_SUCCESS)
        again();
    return status;
}

static void write_to(const char* what, char* at, uint32_t rkey)
{
    const enum ibv_wc_status status = run(IBV_WR_RDMA_WRITE, memory, mr->lkey, at, rkey, 4096);
    printf("%s: %s%s\n", what, name_of(status), status == IBV_WC_SUCCESS && at[7] == 0x5a ? ", there" : "");
}

static char* map_at(void* at, size_t bytes)
{
    char* const made = mmap(at, bytes, PROT_READ | PROT_WRITE, anonymous | (at ? MAP_FIXED : 0), -1, 0);
    NEED(made != MAP_FAILED);
    return made;
}

static struct ibv_mr* registered(void* at, size_t bytes)
{
    struct ibv_mr* const made = ibv_reg_mr(pd, at, bytes, all_rights);
    NEED(made);
    return made;
}

/* libfabric-cray #1000: a buffer is unmapped, another is mapped at its address, and a peer writes by the old key. */
static void fixed(void)
{
    char* const at = map_at(NULL, size);
    memset(at, 1, size);
    struct ibv_mr* const old = registered(at, size);
    write_to("before", at, old->rkey);
    munmap(at, size);
    map_at(at, size);
    write_to("WRITE to what came back", at, old->rkey);
    write_to("once more", at + 8192, old->rkey);
    struct ibv_mr* const fresh = registered(at, size);
    write_to("by a new key", at, fresh->rkey);
    ibv_dereg_mr(fresh);
    ibv_dereg_mr(old);
}

/* libfabric-cray #1350: a READ gives what the previous iteration left. */
static void previous(void)
{
    char* const at = map_at(NULL, size);
    memset(at, 1, size);
    struct ibv_mr* const old = registered(at, size);
    map_at(at, size); /* over it */
    memset(at, 2, size);
    const enum ibv_wc_status status = run(IBV_WR_RDMA_READ, memory, mr->lkey, at, old->rkey, 64);
    printf("READ of the second iteration: %s%s\n", name_of(status),
           status == IBV_WC_SUCCESS && memory[0] == 2 ? ", there" : "");
    ibv_dereg_mr(old);
}

/* libfabric #5909, #5944: blocks above malloc's threshold, which the C library unmaps by itself. */
static void blocks(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    char* const first = malloc(size);
    NEED(first);
    memset(first, 1, size);
    struct ibv_mr* const old = registered(first, size);
    free(first);
    char* const second = malloc(size);
    NEED(second == first);
    memset(second, 2, size);
    write_to("WRITE to the next block", second, old->rkey);
    ibv_dereg_mr(old);
    free(second);
}

/* libfabric #6474: a child that exits, then free, malloc and a transfer. */
static void child(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    char* const first = malloc(size);
    NEED(first);
    memset(first, 1, size);
    struct ibv_mr* const old = registered(first, size);
    const pid_t other = fork();
    if (other == 0) {
        munmap((void*)((uintptr_t)first & ~4095ul), 4096); /* the child's own copy */
        _exit(0);
    }
    waitpid(other, NULL, 0);
    write_to("behind a child", first, old->rkey);
    free(first);
    char* const second = malloc(size);
    NEED(second == first);
    memset(second, 2, size);
    write_to("behind a child and free()", second, old->rkey);
    ibv_dereg_mr(old);
    free(second);
}

/* Open MPI #4509: threads that give back parts of a buffer that is in use. */
static char* part_of;

static void* gives_back(void* nothing)
{
    madvise(part_of + 65536, 8192, MADV_DONTNEED);
    return nothing;
}

static void parts(void)
{
    part_of = map_at(NULL, size);
    memset(part_of, 1, size);
    struct ibv_mr* const whole = registered(part_of, size);
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, gives_back, NULL) == 0);
    pthread_join(thread, NULL);
    write_to("in front of it", part_of, whole->rkey);
    write_to("behind it", part_of + 65536 + 8192, whole->rkey);
    write_to("in what was given back", part_of + 65536 + 4096, whole->rkey);
    write_to("in front of it, again", part_of, whole->rkey);
    ibv_dereg_mr(whole);
}

/* Open MPI #3685: the entry's own memory is stale, by a local key. */
static void local(void)
{
    char* const at = map_at(NULL, size);
    memset(at, 1, size);
    struct ibv_mr* const old = registered(at, size);
    munmap(at, size);
    map_at(at, size);
    memset(at, 3, size);
    const enum ibv_wc_status status = run(IBV_WR_RDMA_WRITE, at, old->lkey, memory, mr->rkey, 64);
    printf("a WRITE from what came back: %s%s\n", name_of(status),
           status == IBV_WC_SUCCESS && memory[0] == 3 ? ", there" : "");
    ibv_dereg_mr(old);
}

/* vllm-ascend #15350: the memory below an address of which all know the key is exchanged in the midst of traffic. */
static void remapped(void)
{
    const int pool = memfd_create("pool", 0);
    NEED(ftruncate(pool, 2 * size) == 0);
    char* const at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, pool, 0);
    NEED(at != MAP_FAILED);
    struct ibv_mr* const old = registered(at, size);
    write_to("before", at, old->rkey);
    NEED(mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, pool, size) == at);
    write_to("behind the exchange", at, old->rkey);
    ibv_dereg_mr(old);
    close(pool);
}

/* TensorRT-LLM #17006: an allocator gives the same pointer with another size. */
static void resized(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    char* const first = malloc(size);
    NEED(first);
    memset(first, 1, size);
    struct ibv_mr* const old = registered(first, size);
    char* const second = realloc(first, size / 2); /* the C library's mremap(): the rest goes */
    NEED(second == first);
    write_to("what is left", second, old->rkey);
    map_at((char*)(((uintptr_t)second + size / 2 + 8191) & ~4095ul), 8192);
    write_to("what came behind it", (char*)(((uintptr_t)second + size / 2 + 8191) & ~4095ul), old->rkey);
    ibv_dereg_mr(old);
}

/* The second half is gone: an access begins in front of it, or where its last page is mapped again. */
static void gone_half(int last_page_again)
{
    char *const at = map_at(NULL, size), *const last_page = at + size - 4096;
    memset(at, 1, size);
    struct ibv_mr* const old = registered(at, size);
    munmap(at + size / 2, size / 2);
    if (last_page_again)
        map_at(last_page, 4096);
    write_to("behind munmap() of a half", last_page_again ? last_page : at + size / 2 - 32, old->rkey);
    ibv_dereg_mr(old);
}

static void half(void)
{
    gone_half(0);
}

static void half_with_last_page(void)
{
    gone_half(1);
}

/* A window of a region that is stale. */
static void window(void)
{
    char* const at = map_at(NULL, size);
    memset(at, 1, size);
    struct ibv_mr* const old = ibv_reg_mr(pd, at, size, all_rights | IBV_ACCESS_MW_BIND);
    struct ibv_mw* const part = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    NEED(old && part);
    struct ibv_send_wr entry = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
    entry.bind_mw.mw = part;
    entry.bind_mw.rkey = ibv_inc_rkey(part->rkey);
    entry.bind_mw.bind_info = (struct ibv_mw_bind_info){
        .mr = old, .addr = (uintptr_t)at, .length = size, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK("post", 0, ibv_post_send(b.qp, &entry, &bad));
    CHECK("bind", IBV_WC_SUCCESS, next_completion(b.cq).status);
    write_to("before", at, entry.bind_mw.rkey);
    map_at(at, size);
    write_to("WRITE by a window", at, entry.bind_mw.rkey);
    CHECK("ibv_dealloc_mw", 0, ibv_dealloc_mw(part));
    ibv_dereg_mr(old);
}

/* Which calls are seen: each with memory of its own. */
static void* heap_block(void)
{
    char* const at = sbrk(size);
    NEED(at != (void*)-1);
    return (void*)(((uintptr_t)at + 4095) & ~4095ul);
}

static void seen(const char* call)
{
    char *at = map_at(NULL, size), *other;
    int shared = -1, file = -1;
    if (!strcmp(call, "shmdt")) {
        NEED((shared = shmget(IPC_PRIVATE, size, 0600)) >= 0);
        NEED((at = shmat(shared, NULL, 0)) != (void*)-1);
        shmctl(shared, IPC_RMID, NULL);
    } else if (!strncmp(call, "shared_", 7))
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    else if (!strncmp(call, "file_", 5)) {
        char name[] = "stale-XXXXXX";
        NEED((file = mkstemp(name)) >= 0 && unlink(name) == 0 && ftruncate(file, size) == 0);
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    } else if (!strcmp(call, "brk"))
        at = heap_block();
    NEED(at != MAP_FAILED);
    memset(at, 1, 8192);
    struct ibv_mr* const old = registered(at, 8192);
    if (strstr(call, "munmap")) {
        munmap(at, size);
        map_at(at, size);
    } else if (strstr(call, "by_number")) {
        syscall(SYS_munmap, at, size);
        NEED(mmap(at, size, PROT_READ | PROT_WRITE, anonymous | MAP_FIXED_NOREPLACE, -1, 0) == at);
    } else if (!strcmp(call, "mmap")) {
        map_at(at, size);
    } else if (!strcmp(call, "mremap")) {
        NEED((other = map_at(NULL, size)));
        NEED(mremap(at, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
        map_at(at, 8192);
    } else if (!strcmp(call, "mremap_over")) {
        NEED((other = map_at(NULL, size)));
        NEED(mremap(other, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
    } else if (!strcmp(call, "dontneed") || !strcmp(call, "shared_dontneed")) {
        madvise(at, 8192, MADV_DONTNEED);
    } else if (!strcmp(call, "free")) {
        madvise(at, 8192, MADV_FREE);
    } else if (!strcmp(call, "file_truncate")) {
        NEED(ftruncate(file, 0) == 0 && ftruncate(file, size) == 0);
    } else if (strstr(call, "_remove")) {
        NEED(madvise(at, 8192, MADV_REMOVE) == 0);
    } else if (!strcmp(call, "brk")) {
        NEED(brk(at) == 0 && brk(at + size) == 0);
    } else if (!strcmp(call, "shmdt")) {
        NEED(shmdt(at) == 0);
        map_at(at, size);
    } else if (!strcmp(call, "mprotect")) {
        mprotect(at, 8192, PROT_NONE);
        mprotect(at, 8192, PROT_READ | PROT_WRITE);
    } else if (!strcmp(call, "unmapped")) {
        munmap(at, size);
    }
    write_to(call, at, old->rkey);
    ibv_dereg_mr(old);
}

/* What is not stale: the heap that hands out the same pages again, and what the program registers anew. */
static void heap(void)
{
    for (int each = 0; each < 200; ++each) {
        char* const at = malloc(20000);
        memset(at, each, 20000);
        struct ibv_mr* const one = registered(at, 20000);
        free(at);
        char* const next = malloc(20000);
        if (next == at && run(IBV_WR_RDMA_WRITE, memory, mr->lkey, next, one->rkey, 4096) != IBV_WC_SUCCESS)
            CHECK("a block of the heap", 0, 1);
        free(next);
        ibv_dereg_mr(one);
        char* const again = map_at(NULL, size);
        struct ibv_mr* const two = registered(again, size);
        write_to("mapped", again, two->rkey);
        ibv_dereg_mr(two);
        munmap(again, size);
    }
}

/* Four threads allocate, give back, fork and register, while a peer writes (libfabric #7569, #10943). */
static volatile int ends_now;

static void* allocates(void* nothing)
{
    unsigned seed = (unsigned)(uintptr_t)&seed;
    while (!ends_now) {
        const size_t bytes = (size_t)rand_r(&seed) % (2 * size) + 1;
        char* const at = malloc(bytes);
        memset(at, 1, bytes);
        struct ibv_mr* const one = rand_r(&seed) % 4 ? NULL : ibv_reg_mr(pd, at, bytes, all_rights);
        if (one && rand_r(&seed) % 2) {
            ibv_dereg_mr(one);
            free(at);
        } else {
            free(at);
            if (one)
                ibv_dereg_mr(one);
        }
        if (rand_r(&seed) % 64 == 0)
            malloc_trim(0);
        usleep(100);
    }
    return nothing;
}

static void storm(void)
{
    pthread_t threads[4];
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    for (int each = 0; each < 4; ++each)
        NEED(pthread_create(&threads[each], NULL, allocates, NULL) == 0);
    for (int each = 0; each < 300; ++each) {
        CHECK("WRITE", IBV_WC_SUCCESS, run(IBV_WR_RDMA_WRITE, memory, mr->lkey, memory, mr->rkey, 4096));
        if (each % 50 == 0) {
            const pid_t other = fork();
            if (other == 0)
                _exit(0);
            waitpid(other, NULL, 0);
        }
    }
    ends_now = 1;
    for (int each = 0; each < 4; ++each)
        pthread_join(threads[each], NULL);
}

static char* dropped;
static volatile sig_atomic_t drops;

static void drops_pages(int number)
{
    (void)number;
    madvise(dropped, 4096, MADV_DONTNEED);
    ++drops;
}

/* The handler of a profiler's signal runs on any thread, and waits until its call has been noticed. */
static void profiled(void)
{
    const struct sigaction handler = {.sa_handler = drops_pages, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    NEED((dropped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, anonymous, -1, 0)) != MAP_FAILED);
    struct ibv_mr* const region = ibv_reg_mr(pd, dropped, 4096, IBV_ACCESS_LOCAL_WRITE);
    NEED(region != NULL);
    sigaction(SIGPROF, &handler, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    while (drops < 300)
        CHECK("WRITE", IBV_WC_SUCCESS, run(IBV_WR_RDMA_WRITE, memory, mr->lkey, memory, mr->rkey, 4096));
    setitimer(ITIMER_PROF, &never, NULL);
    ibv_dereg_mr(region);
    munmap(dropped, 4096);
}

/* A mapping of which a part is registered is moved as a whole. */
static void grown(void)
{
    char* const at = map_at(NULL, size);
    memset(at, 1, size);
    struct ibv_mr* const part = registered(at + 65536, 4096);
    char* const place = map_at(NULL, 2 * size);
    CHECK("mremap() of all of it", 1, mremap(at, size, 2 * size, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    CHECK("its bytes", 1, place[65536]);
    map_at(at, size);
    write_to("where it was", at + 65536, part->rkey);
    ibv_dereg_mr(part);
}

/* A program with a userfaultfd of its own for memory that is registered. */
static void own_userfault(void)
{
    const int own = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    NEED(own >= 0 && ioctl(own, UFFDIO_API, &api) == 0);
    char* const at = map_at(NULL, size);
    memset(at, 1, size);
    struct ibv_mr* const part = registered(at + 65536, 4096);
    struct uffdio_register wanted = {.range = {(uintptr_t)at, size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK("UFFDIO_REGISTER", 0, ioctl(own, UFFDIO_REGISTER, &wanted));
    write_to("with another one", at + 65536, part->rkey);
    munmap(at, size);
    map_at(at, size);
    write_to("behind munmap()", at + 65536, part->rkey);
    ibv_dereg_mr(part);
    close(own);
}

/* Ends with all of it registered, and goes on to use memory in its exit. */
static char* left;
static void leave(void)
{
    munmap(left, size);
    free(malloc(size));
}

static void exits(void)
{
    left = map_at(NULL, size);
    memset(left, 1, size);
    registered(left, size);
    atexit(leave);
    for (int number = 3; number < 1024; ++number) /* as a daemon does */
        if (number != context->cmd_fd && number != context->async_fd)
            close(number);
    printf("it ends\n");
    exit(0);
}

/* UCX overwrites the C library's functions, and those that dlsym() finds, with jumps to its own. */
static volatile int ucx_heard;

static void hear(int event, void* what, void* nothing)
{
    (void)event, (void)what, (void)nothing;
    ++ucx_heard;
}

static void patch_by_ucx(void)
{
    typedef int set_handler(int, int, void (*)(int, void*, void*), void*);
    void* const library = dlopen("libucs.so.0", RTLD_NOW | RTLD_GLOBAL); /* which has libucm */
    NEED(library);
    set_handler* const set = (set_handler*)(uintptr_t)dlsym(RTLD_DEFAULT, "ucm_set_event_handler");
    NEED(set && set(1 << 17, 0, hear, NULL) == 0); /* UCM_EVENT_VM_UNMAPPED */
}

int main(int count, char** words)
{
    static const struct {
        const char* name;
        void (*run)(void);
    } all[] = {{"fixed", fixed},       {"previous", previous}, {"blocks", blocks},
               {"child", child},       {"parts", parts},       {"local", local},
               {"remapped", remapped}, {"resized", resized},   {"window", window},
               {"half", half},         {"half_with_last_page", half_with_last_page},
               {"heap", heap},         {"storm", storm},       {"exits", exits},
               {"profiled", profiled}, {"grown", grown},       {"own_userfault", own_userfault}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count < 2)
        return 2;
    begin();
    const int with_ucx = getenv("STALE_UCX") != NULL;
    if (with_ucx)
        patch_by_ucx();
    const int before = ucx_heard;
    if (count == 3)
        seen(words[2]);
    else
        for (unsigned each = 0; each < sizeof all / sizeof *all; ++each)
            if (strcmp(words[1], all[each].name) == 0)
                all[each].run();
    if (with_ucx)
        CHECK("UCX hears of it", 1, ucx_heard > before);
    end();
    if (failed_checks)
        printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
