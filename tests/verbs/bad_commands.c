/* Commands that are wrong, for tests/scripts/run_faults.sh: they get the errors that Linux gives, and leave nothing. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

enum { most_bytes = 512, nowhere = 16 };

static char command[most_bytes] __attribute__((aligned(8)));
static char answer[most_bytes] __attribute__((aligned(8)));

/* Writes the first `bytes` of the command; 0 or the error. */
static int write_it(int node, const void* from, size_t bytes)
{
    errno = 0;
    const ssize_t written = write(node, from, bytes);
    CHECK("written", written >= 0 ? (ssize_t)bytes : -1, written);
    return errno;
}

static struct ib_uverbs_cmd_hdr* header(void)
{
    return (void*)command;
}

/* A command of the old form. Each body begins with the address of the answer where there is one. */
static int execute(unsigned number, const void* body, size_t bytes, size_t answer_bytes)
{
    *header() = (struct ib_uverbs_cmd_hdr){
        .command = number,
        .in_words = (uint16_t)((sizeof *header() + bytes) / 4),
        .out_words = (uint16_t)(answer_bytes / 4)};
    memcpy(command + sizeof *header(), body, bytes);
    return write_it(context->cmd_fd, command, sizeof *header() + bytes);
}

static const struct {
    unsigned number;
    size_t request, response;
} forms[] = {
    {IB_USER_VERBS_CMD_QUERY_DEVICE, sizeof(struct ib_uverbs_query_device), sizeof(struct ib_uverbs_query_device_resp)},
    {IB_USER_VERBS_CMD_QUERY_PORT, sizeof(struct ib_uverbs_query_port), sizeof(struct ib_uverbs_query_port_resp)},
    {IB_USER_VERBS_CMD_ALLOC_PD, sizeof(struct ib_uverbs_alloc_pd), sizeof(struct ib_uverbs_alloc_pd_resp)},
    {IB_USER_VERBS_CMD_DEALLOC_PD, sizeof(struct ib_uverbs_dealloc_pd), 0},
    {IB_USER_VERBS_CMD_REG_MR, sizeof(struct ib_uverbs_reg_mr), sizeof(struct ib_uverbs_reg_mr_resp)},
    {IB_USER_VERBS_CMD_REREG_MR, sizeof(struct ib_uverbs_rereg_mr), sizeof(struct ib_uverbs_rereg_mr_resp)},
    {IB_USER_VERBS_CMD_DEREG_MR, sizeof(struct ib_uverbs_dereg_mr), 0},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(struct ib_uverbs_create_comp_channel),
     sizeof(struct ib_uverbs_create_comp_channel_resp)},
    {IB_USER_VERBS_CMD_CREATE_CQ, sizeof(struct ib_uverbs_create_cq), sizeof(struct ib_uverbs_create_cq_resp)},
    {IB_USER_VERBS_CMD_DESTROY_CQ, sizeof(struct ib_uverbs_destroy_cq), sizeof(struct ib_uverbs_destroy_cq_resp)},
    {IB_USER_VERBS_CMD_CREATE_QP, sizeof(struct ib_uverbs_create_qp), sizeof(struct ib_uverbs_create_qp_resp)},
    {IB_USER_VERBS_CMD_QUERY_QP, sizeof(struct ib_uverbs_query_qp), sizeof(struct ib_uverbs_query_qp_resp)},
    {IB_USER_VERBS_CMD_MODIFY_QP, sizeof(struct ib_uverbs_modify_qp), 0},
    {IB_USER_VERBS_CMD_DESTROY_QP, sizeof(struct ib_uverbs_destroy_qp), sizeof(struct ib_uverbs_destroy_qp_resp)},
};

static void cut_short(void)
{
    for (size_t each = 0; each < sizeof forms / sizeof *forms; ++each) {
        const size_t whole = sizeof *header() + forms[each].request;
        memset(command, 0xff, sizeof command);
        *header() = (struct ib_uverbs_cmd_hdr){
            .command = forms[each].number, .in_words = (uint16_t)(whole / 4), .out_words = most_bytes / 4};
        for (size_t bytes = 0; bytes < whole; ++bytes)
            CHECK("a command cut short", EINVAL, write_it(context->cmd_fd, command, bytes));
        for (size_t bytes = sizeof *header(); bytes < whole; bytes += 4) {
            header()->in_words = (uint16_t)(bytes / 4);
            CHECK("a request that is too short", EINVAL, write_it(context->cmd_fd, command, bytes));
        }
        header()->in_words = (uint16_t)(whole / 4 + 1);
        CHECK("more words than there are", EINVAL, write_it(context->cmd_fd, command, whole));
        if (forms[each].response == 0)
            continue;
        header()->in_words = (uint16_t)(whole / 4);
        header()->out_words = (uint16_t)((forms[each].response - 1) / 4);
        CHECK("no room for the answer", ENOSPC, write_it(context->cmd_fd, command, whole));
    }
}

/* Of the extended form: lengths in words of 8 bytes, and a second header. */
static void extended(void)
{
    struct {
        struct ib_uverbs_cmd_hdr first;
        struct ib_uverbs_ex_cmd_hdr second;
        struct ib_uverbs_ex_query_device body;
    } ask = {.first = {.command = IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE,
                       .in_words = sizeof ask.body / 8,
                       .out_words = most_bytes / 8},
             .second = {.response = (uintptr_t)answer}},
      good = ask;
    const int node = context->cmd_fd;
    CHECK("a good one", 0, write_it(node, &ask, sizeof ask));
    for (size_t bytes = 0; bytes < sizeof ask; ++bytes)
        CHECK("cut short", EINVAL, write_it(node, &ask, bytes));
    ask.second.provider_in_words = 1;
    CHECK("words of the driver that are not there", EINVAL, write_it(node, &ask, sizeof ask));
    ask = good, ask.second.provider_in_words = 65535, ask.first.in_words = 65535;
    CHECK("words beyond all", EINVAL, write_it(node, &ask, sizeof ask));
    ask = good, ask.second.cmd_hdr_reserved = 1;
    CHECK("a reserved word", EINVAL, write_it(node, &ask, sizeof ask));
    ask = good, ask.second.response = 0;
    CHECK("room for an answer nowhere", EINVAL, write_it(node, &ask, sizeof ask));
    ask = good, ask.first.out_words = 1;
    CHECK("no room for the answer", ENOSPC, write_it(node, &ask, sizeof ask));
    ask = good, ask.second.response = nowhere;
    CHECK("an answer to nowhere", EFAULT, write_it(node, &ask, sizeof ask));
    ask = good, ask.body.comp_mask = 1;
    CHECK("a mask that nobody knows", EINVAL, write_it(node, &ask, sizeof ask));
}

static void unknown(void)
{
    char long_one[8192] = {0};
    *header() = (struct ib_uverbs_cmd_hdr){.command = 55, .in_words = 2};
    CHECK("a number that is none", EOPNOTSUPP, write_it(context->cmd_fd, command, sizeof *header()));
    header()->command = IB_USER_VERBS_CMD_POLL_CQ;
    CHECK("a command that the driver lacks", EOPNOTSUPP, write_it(context->cmd_fd, command, sizeof *header()));
    header()->command = 0x40000000u | IB_USER_VERBS_CMD_ALLOC_PD;
    CHECK("a flag that is none", EINVAL, write_it(context->cmd_fd, command, sizeof *header()));
    CHECK("a command from nowhere", EFAULT, write_it(context->cmd_fd, (void*)(uintptr_t)nowhere, 64));
    CHECK("a long command", EINVAL, write_it(context->cmd_fd, long_one, sizeof long_one));
    CHECK("a second GET_CONTEXT", EINVAL,
          execute(IB_USER_VERBS_CMD_GET_CONTEXT, &(struct ib_uverbs_get_context){.response = (uintptr_t)answer},
                  sizeof(struct ib_uverbs_get_context), most_bytes));
}

/* Methods, of the newer interface. */
static int call_method(const void* request)
{
    errno = 0;
    return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, request) == 0 ? 0 : errno;
}

static void methods(void)
{
    struct {
        struct ib_uverbs_ioctl_hdr first;
        struct ib_uverbs_attr attributes[65];
    } ask = {.first = {.length = sizeof ask.first,
                       .object_id = UVERBS_OBJECT_PD,
                       .method_id = UVERBS_METHOD_PD_DESTROY}},
      good = ask;
    CHECK("a method that libibverbs has write() for", ENOTTY, call_method(&ask));
    CHECK("no method", ENOTTY, ioctl(context->cmd_fd, RDMA_VERBS_IOCTL + 1, &ask) == 0 ? 0 : errno);
    ask.first.method_id = 99;
    CHECK("a number that is none", EPROTONOSUPPORT, call_method(&ask));
    ask = good, ask.first.length = sizeof ask.first - 1;
    CHECK("a length that is too short", EINVAL, call_method(&ask));
    ask = good, ask.first.num_attrs = 1;
    CHECK("an attribute behind the end", EINVAL, call_method(&ask));
    ask = good, ask.first.num_attrs = 65, ask.first.length = sizeof ask;
    CHECK("too many attributes", EINVAL, call_method(&ask));
    CHECK("a method from nowhere", EFAULT, call_method((void*)(uintptr_t)nowhere));
    char* const pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    ask = good, ask.first.num_attrs = 1, ask.first.length = sizeof ask.first + sizeof *ask.attributes;
    memcpy(pages + 4096 - sizeof ask.first, &ask, sizeof ask.first);
    CHECK("attributes from nowhere", EFAULT, call_method(pages + 4096 - sizeof ask.first));
    NEED(munmap(pages, 4096) == 0);
}

static int destroy(unsigned number, uint32_t handle)
{
    struct ib_uverbs_destroy_cq with_answer = {.response = (uintptr_t)answer, .cq_handle = handle};
    if (number == IB_USER_VERBS_CMD_DEALLOC_PD || number == IB_USER_VERBS_CMD_DEREG_MR)
        return execute(number, &handle, sizeof handle, 0);
    return execute(number, &with_answer, sizeof with_answer, sizeof(struct ib_uverbs_destroy_cq_resp));
}

static void handles(void)
{
    struct end one;
    make_end(&one, 16, IBV_QPT_RC);
    const uint32_t of[] = {pd->handle, mr->handle, one.cq->handle, one.qp->handle};
    const unsigned numbers[] = {IB_USER_VERBS_CMD_DEALLOC_PD, IB_USER_VERBS_CMD_DEREG_MR, IB_USER_VERBS_CMD_DESTROY_CQ,
                                IB_USER_VERBS_CMD_DESTROY_QP};
    for (int each = 0; each < 4; ++each) {
        CHECK("a handle of nothing", ENOENT, destroy(numbers[each], 0xdeadbeef));
        for (int other = 0; other < 4; ++other)
            if (other != each)
                CHECK("a handle of something else", EINVAL, destroy(numbers[each], of[other]));
    }
    struct ib_uverbs_query_qp query = {.response = (uintptr_t)answer, .qp_handle = one.cq->handle};
    CHECK("QUERY_QP of a completion queue", EINVAL,
          execute(IB_USER_VERBS_CMD_QUERY_QP, &query, sizeof query, sizeof(struct ib_uverbs_query_qp_resp)));
    struct ib_uverbs_modify_qp modify = {.qp_handle = 0xdeadbeef};
    CHECK("MODIFY_QP of nothing", EINVAL, execute(IB_USER_VERBS_CMD_MODIFY_QP, &modify, sizeof modify, 0));
    struct ib_uverbs_reg_mr reg = {.response = (uintptr_t)answer, .start = (uintptr_t)memory, .length = 4096,
                                   .hca_va = (uintptr_t)memory, .pd_handle = mr->handle, .access_flags = 1};
    CHECK("REG_MR in a domain that is none", EINVAL,
          execute(IB_USER_VERBS_CMD_REG_MR, &reg, sizeof reg, sizeof(struct ib_uverbs_reg_mr_resp)));
    end_end(&one);

    struct ibv_context* const before = context;
    NEED(context = ibv_open_device(before->device));
    CHECK("a handle of another context", ENOENT, destroy(IB_USER_VERBS_CMD_DEALLOC_PD, of[0]));
    CHECK("a handle of another context", ENOENT, destroy(IB_USER_VERBS_CMD_DEREG_MR, of[1]));
    CHECK("ibv_close_device", 0, ibv_close_device(context));
    context = before;
}

static int descriptors(void)
{
    DIR* const all = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(all))
        ++count;
    closedir(all);
    return count;
}

/* What the program cannot hear of is not made: else its domain and its completion queue would be in use. */
static void answers_to_nowhere(void)
{
    struct ibv_pd* domain;
    struct ibv_cq* cq;
    NEED(domain = ibv_alloc_pd(context));
    NEED(cq = ibv_create_cq(context, 16, NULL, NULL, 0));
    const int before = descriptors();
    struct {
        struct ib_uverbs_create_cq core;
        struct mlx5_ib_create_cq driver;
    } queue = {.core = {.response = nowhere, .cqe = 15, .comp_channel = -1},
               .driver = {.buf_addr = (uintptr_t)memory, .db_addr = (uintptr_t)memory + 4096, .cqe_size = 64}};
    struct {
        struct ib_uverbs_create_qp core;
        struct mlx5_ib_create_qp driver;
    } pair = {.core = {.response = nowhere, .pd_handle = domain->handle, .send_cq_handle = cq->handle,
                       .recv_cq_handle = cq->handle, .max_send_wr = 16, .qp_type = IBV_QPT_RC},
              .driver = {.buf_addr = (uintptr_t)memory + 8192, .db_addr = (uintptr_t)memory + 4096,
                         .sq_wqe_count = 16}};
    struct ib_uverbs_reg_mr reg = {.response = nowhere, .start = (uintptr_t)memory, .length = 4096,
                                   .hca_va = (uintptr_t)memory, .pd_handle = domain->handle, .access_flags = 1};
    const uint64_t only_answer = nowhere;
    for (int each = 0; each < 20; ++each) {
        CHECK("ALLOC_PD", EFAULT, execute(IB_USER_VERBS_CMD_ALLOC_PD, &only_answer, sizeof only_answer, 8));
        CHECK("CREATE_COMP_CHANNEL", EFAULT,
              execute(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &only_answer, sizeof only_answer, 4));
        CHECK("REG_MR", EFAULT,
              execute(IB_USER_VERBS_CMD_REG_MR, &reg, sizeof reg, sizeof(struct ib_uverbs_reg_mr_resp)));
        CHECK("CREATE_CQ", EFAULT, execute(IB_USER_VERBS_CMD_CREATE_CQ, &queue, sizeof queue, 64));
        CHECK("CREATE_QP", EFAULT, execute(IB_USER_VERBS_CMD_CREATE_QP, &pair, sizeof pair, 64));
    }
    CHECK("descriptors", before, descriptors());
    CHECK("the queue is not in use", 0, ibv_destroy_cq(cq));
    CHECK("the domain is not in use", 0, ibv_dealloc_pd(domain));
}

static int registered(void* start, size_t bytes, int access)
{
    errno = 0;
    struct ibv_mr* const made = ibv_reg_mr(pd, start, bytes, access);
    if (made)
        ibv_dereg_mr(made);
    return errno;
}

static void memory_that_cannot_be(void)
{
    char* const pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    mprotect(pages + 8192, 4096, PROT_READ);
    CHECK("a hole", EFAULT, registered(pages, 8192, IBV_ACCESS_LOCAL_WRITE));
    CHECK("read-only, to write", EFAULT, registered(pages + 8192, 4096, IBV_ACCESS_LOCAL_WRITE));
    CHECK("read-only, to read", 0, registered(pages + 8192, 4096, 0));
    CHECK("no byte", EINVAL, registered(pages, 0, 0));
    CHECK("beyond all addresses", EINVAL, registered(pages, ~(size_t)0 - 4096, 0));
    CHECK("a peer may write, and this end may not", EINVAL, registered(pages, 4096, IBV_ACCESS_REMOTE_WRITE));
    CHECK("nothing is mapped at 0", EFAULT, registered(NULL, 4096, IBV_ACCESS_LOCAL_WRITE));
    CHECK("no byte at 0", EINVAL, registered(NULL, 0, 0));
    CHECK("no byte of a page, as Linux counts pages", 0, registered(pages + 1, 0, IBV_ACCESS_LOCAL_WRITE));
    munmap(pages, 3 * 4096);

    const int file = memfd_create("short", MFD_CLOEXEC);
    CHECK("ftruncate", 0, ftruncate(file, 5000));
    for (int private = 0; private < 2; ++private) {
        char* const mapped =
            mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, private ? MAP_PRIVATE : MAP_SHARED, file, 0);
        CHECK("all of a file", 0, registered(mapped, 5000, all_rights));
        CHECK("to the end of its last page", 0, registered(mapped, 2 * 4096, all_rights));
        CHECK("beyond the end of a file", EFAULT, registered(mapped, 2 * 4096 + 1, all_rights));
        CHECK("behind the end of a file", EFAULT, registered(mapped + 3 * 4096, 4096, 0));
        munmap(mapped, 4 * 4096);
    }
    close(file);
}

/* A region of 0 bytes has a key, with which nothing can be accessed. */
static void no_bytes(void)
{
    struct end one;
    struct ibv_mr* const none = ibv_reg_mr(pd, memory + 8, 0, all_rights);
    NEED(none);
    make_end(&one, 16, IBV_QPT_RC);
    to_init(one.qp, all_rights);
    to_rtr(one.qp, one.qp);
    to_rts(one.qp);
    struct ibv_sge piece = {.addr = (uintptr_t)memory + 8, .length = 1, .lkey = none->lkey};
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    entry.wr.rdma.remote_addr = (uintptr_t)memory;
    entry.wr.rdma.rkey = mr->rkey;
    CHECK("post", 0, ibv_post_send(one.qp, &entry, &bad));
    CHECK("a byte of a region without bytes", IBV_WC_LOC_PROT_ERR, next_completion(one.cq).status);
    end_end(&one);
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(none));
}

/* The peer refuses it as invalid. */
static void unaligned_atomic(void)
{
    struct ibv_mr* const words = ibv_reg_mr(pd, memory, 4096, all_rights | IBV_ACCESS_REMOTE_ATOMIC);
    struct end a, b;
    NEED(words);
    make_end(&a, 16, IBV_QPT_RC);
    make_end(&b, 16, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights | IBV_ACCESS_REMOTE_ATOMIC);
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = 8, .lkey = words->lkey};
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    entry.wr.atomic.remote_addr = (uintptr_t)memory + 12;
    entry.wr.atomic.rkey = words->rkey;
    CHECK("post", 0, ibv_post_send(a.qp, &entry, &bad));
    CHECK("an atomic at an address that is not aligned", IBV_WC_REM_INV_REQ_ERR, next_completion(a.cq).status);
    CHECK("the peer's queue pair", IBV_QPS_ERR, state_of(b.qp));
    end_end(&a);
    end_end(&b);
    CHECK("ibv_dereg_mr", 0, ibv_dereg_mr(words));
}

static void in_use(void)
{
    struct end one;
    make_end(&one, 16, IBV_QPT_RC);
    CHECK("a domain in use", EBUSY, ibv_dealloc_pd(pd));
    CHECK("a completion queue in use", EBUSY, ibv_destroy_cq(one.cq));
    struct end other;
    make_end(&other, 16, IBV_QPT_RC);
    connect_ends(one.qp, other.qp, all_rights);
    CHECK("post", 0, post(one.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    CHECK("all goes on", IBV_WC_SUCCESS, next_completion(one.cq).status);
    end_end(&one);
    end_end(&other);
}

static void limits(void)
{
    struct ibv_device_attr has;
    CHECK("ibv_query_device", 0, ibv_query_device(context, &has));
    struct ibv_cq* const cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr wanted = {.send_cq = cq,
                                      .recv_cq = cq,
                                      .cap = {.max_send_wr = 1, .max_recv_wr = (uint32_t)has.max_qp_wr,
                                              .max_send_sge = (uint32_t)has.max_sge, .max_recv_sge = 1},
                                      .qp_type = IBV_QPT_RC};
    struct ibv_qp* const made = ibv_create_qp(pd, &wanted);
    CHECK("as much as the device has", 1, made != NULL);
    if (made)
        CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(made));
    CHECK("more entries than it has", 1, ibv_create_cq(context, has.max_cqe + 1, NULL, NULL, 0) == NULL);
    CHECK("why", EINVAL, errno);
    CHECK("ibv_destroy_cq", 0, ibv_destroy_cq(cq));
}

int main(void)
{
    open_device();
    cut_short();
    extended();
    unknown();
    methods();
    handles();
    answers_to_nowhere();
    memory_that_cannot_be();
    sigset_t all, before; // threads of programs block all signals, and the engine finds bad addresses by faults
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    unknown();
    methods();
    answers_to_nowhere();
    memory_that_cannot_be();
    sigprocmask(SIG_SETMASK, NULL, &all);
    CHECK("SIGSEGV is as it was", 1, sigismember(&all, SIGSEGV));
    sigprocmask(SIG_SETMASK, &before, NULL);
    no_bytes();
    unaligned_atomic();
    in_use();
    limits();
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
