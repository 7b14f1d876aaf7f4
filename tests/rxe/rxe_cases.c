// rxe-cases: small RC exchanges between two verbs devices, one for each capture.
//
//   rxe-cases CASE...            on the responder, then
//   rxe-cases -c ADDRESS CASE... on the requester, with the same cases.
//
// With GID=0 in the environment, the program uses its link-local IPv6 address.
//
// Every case has a new queue pair on each side; a TCP connection (port 18600) carries the data that both must know.
// Build: cc -O2 -o rxe-cases rxe-cases.c -libverbs
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kSize = 131072, kPsn = 0xfffffe };  // The sequence numbers wrap in most cases.

struct Meeting {
    char name[16];  // Name of the case, visible in the capture.
    union ibv_gid gid;
    uint32_t qpn, psn, key, other_key;
    uint64_t address;
};

static int connection;                    // TCP, to the other side
static int requester;
static int gid_index = 1;  // 0: link-local IPv6, 1: IPv4
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr, *read_only;
static struct Meeting mine, other;
static char memory[kSize] __attribute__((aligned(4096)));

static void check(int good, const char *what) {
    if (!good) { perror(what); exit(1); }
}
static void meet(int delay_ms) {  // Returns when both sides have called it.
    char token = 0;
    usleep(delay_ms * 1000);
    check(write(connection, &token, 1) == 1 && read(connection, &token, 1) == 1, "meet");
}
static int patience(void) {  // Timeout in seconds for events that must happen.
    const char *wanted = getenv("PATIENCE");
    return wanted ? atoi(wanted) : 60;
}
static void dial(const char *server) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(18600)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    if (!server) {
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        check(!bind(listener, (void *)&address, sizeof address) && !listen(listener, 1), "listen");
        check((connection = accept(listener, NULL, NULL)) >= 0, "accept");
        return;
    }
    inet_pton(AF_INET, server, &address.sin_addr);
    connection = listener;
    for (int tries = 0; connect(connection, (void *)&address, sizeof address); ++tries) {
        check(tries < 5 * patience(), "connect");
        usleep(200000);
        close(connection);
        connection = socket(AF_INET, SOCK_STREAM, 0);
    }
}
static void completion(const char *what) {  // Waits for one completion and prints it.
    struct ibv_wc wc = {0};
    for (int waited = 0; !ibv_poll_cq(cq, 1, &wc); ++waited) {
        if (waited == 2000 * patience()) { printf("  %s: nothing\n", what); return; }
        usleep(500);
    }
    printf("  %s: %s, opcode %d, length %u, flags %#x, immediate/key %#x\n", what, ibv_wc_status_str(wc.status),
           wc.opcode, wc.byte_len, wc.wc_flags,
           wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : wc.invalidated_rkey);
}
static void receive(uint32_t length) {  // Posts one receive.
    struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    check(!ibv_post_recv(qp, &wr, &bad), "post_recv");
}
static void post(int opcode, uint32_t length, uint64_t offset, uint32_t key, uint32_t word) {
    struct ibv_sge sge = {(uintptr_t)memory, length, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = length > 0, .opcode = opcode}, *bad;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_SEND_WITH_INV) wr.invalidate_rkey = word;
    else wr.imm_data = htonl(word);
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = other.address + offset, wr.wr.atomic.rkey = key;
        wr.wr.atomic.compare_add = word, wr.wr.atomic.swap = 0x1122334455667788;
    } else {
        wr.wr.rdma.remote_addr = other.address + offset, wr.wr.rdma.rkey = key;
    }
    check(!ibv_post_send(qp, &wr, &bad), "post_send");
}
static void ask(const char *what, int opcode, uint32_t length, uint64_t offset, uint32_t key, uint32_t word) {
    post(opcode, length, offset, key, word);
    completion(what);
}

// Makes a new queue pair on each side. The requester's first PSN is `ahead` of the PSN that the responder expects.
static void open_qp(const char *name, int ahead, int wrong_qpn, enum ibv_mtu mtu) {
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 16,
                                            .max_recv_wr = 16,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND};
    check((qp = ibv_create_qp(pd, &init)) != NULL, "create_qp");
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS), "to INIT");

    mine = (struct Meeting){.qpn = qp->qp_num, .psn = kPsn, .key = mr->rkey, .other_key = read_only->rkey,
                            .address = (uintptr_t)memory};
    snprintf(mine.name, sizeof mine.name, "%s", name);
    ibv_query_gid(context, 1, gid_index, &mine.gid);
    check(write(connection, &mine, sizeof mine) == sizeof mine, "send meeting");
    check(recv(connection, &other, sizeof other, MSG_WAITALL) == sizeof other, "receive meeting");
    check(!strcmp(mine.name, other.name), "same case");

    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = other.qpn + wrong_qpn,
        .rq_psn = other.psn, .max_dest_rd_atomic = 4, .min_rnr_timer = 18, .ah_attr = {.is_global = 1, .port_num = 1,
        .grh = {.dgid = other.gid, .sgid_index = gid_index, .hop_limit = 64}}};
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = (mine.psn + ahead) & 0xffffff, .max_rd_atomic = 4,
                                .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
                         IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY), "to RTS");
    meet(0);
}
static void close_qp(void) {
    meet(100);
    ibv_destroy_qp(qp);
    for (struct ibv_wc wc; ibv_poll_cq(cq, 1, &wc);) {}
}

// The cases: the actions of the requester, and those of the responder meanwhile.

enum {
    kSend = IBV_WR_SEND, kSendImm = IBV_WR_SEND_WITH_IMM, kSendInvalidate = IBV_WR_SEND_WITH_INV,
    kWrite = IBV_WR_RDMA_WRITE, kWriteImm = IBV_WR_RDMA_WRITE_WITH_IMM, kRead = IBV_WR_RDMA_READ,
    kAdd = IBV_WR_ATOMIC_FETCH_AND_ADD, kSwap = IBV_WR_ATOMIC_CMP_AND_SWP
};

static void send_(void) {
    meet(0);
    ask("SEND 0", kSend, 0, 0, 0, 0);
    ask("SEND 13", kSend, 13, 0, 0, 0);
    ask("SEND 1024", kSend, 1024, 0, 0, 0);
    ask("SEND 3001", kSend, 3001, 0, 0, 0);
    ask("SEND 5 with immediate", kSendImm, 5, 0, 0, 0xcafe0001);
}
static void take(int receives, uint32_t length) {
    for (int i = 0; i < receives; ++i) receive(length);
    meet(0);
    for (int i = 0; i < receives; ++i) completion("receive");
}
static void take5(void) { take(5, kSize); }
static void take2(void) { take(2, kSize); }
static void take_short(void) { take(1, 1500); }
static void take_late(void) {
    usleep(150000);
    receive(kSize);
    completion("receive");
}
static void write_(void) {
    meet(0);
    ask("WRITE 0", kWrite, 0, 0, 0, 0);
    ask("WRITE 7", kWrite, 7, 3, other.key, 0);
    ask("WRITE 3001", kWrite, 3001, 0, other.key, 0);
    ask("WRITE 16 with immediate", kWriteImm, 16, 0, other.key, 0xcafe0002);
    ask("WRITE 2050 with immediate", kWriteImm, 2050, 0, other.key, 0xcafe0003);
}
static void read_(void) {
    ask("READ 0", kRead, 0, 0, 0, 0);
    ask("READ 7", kRead, 7, 1, other.key, 0);
    ask("READ 3001", kRead, 3001, 0, other.key, 0);
    for (int i = 0; i < 6; ++i) post(kRead, 1500, 0, other.key, 0);  // More than the four READs that may be in flight.
    post(kWrite, 8, 4096, other.key, 0);
    for (int i = 0; i < 7; ++i) completion("READ 1500 six times, then WRITE 8");
}
static void zero(void) {
    memset(memory + 64, 0, 8);
    meet(0);
}
static void atomic(void) {  // The word is 0 before.
    meet(0);
    ask("FETCH_ADD 5", kAdd, 8, 64, other.key, 5);
    ask("CMP_SWAP, equal", kSwap, 8, 64, other.key, 5);
    ask("CMP_SWAP, unequal", kSwap, 8, 64, other.key, 5);
}
static void window(void) {
    uint32_t key;
    check(recv(connection, &key, sizeof key, MSG_WAITALL) == sizeof key, "receive key");
    ask("WRITE 100 through the window", kWrite, 100, 1024, key, 0);
    ask("READ 100 through the window", kRead, 100, 1024, key, 0);
    ask("SEND 4 with invalidate", kSendInvalidate, 4, 0, 0, key);
    ask("WRITE through the dead window", kWrite, 100, 1024, key, 0);
    meet(0);
}
static void give_window(void) {  // A type 2B window over bytes 1024..2047.
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
    check(mw != NULL, "alloc_mw");
    uint32_t key = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.mw = mw, wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)memory + 1024, 1024,
                                                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    receive(kSize);
    check(!ibv_post_send(qp, &wr, &bad), "post bind");
    completion("bind");
    check(write(connection, &key, sizeof key) == sizeof key, "send key");
    completion("receive of SEND with invalidate");
    meet(0);
    ibv_dealloc_mw(mw);
}
static void window_1(void) {
    uint32_t key;
    check(recv(connection, &key, sizeof key, MSG_WAITALL) == sizeof key, "receive key");
    ask("WRITE 100 through the window of type 1", kWrite, 100, 1024, key, 0);
    meet(0);
    meet(0);
    ask("WRITE through the unbound window", kWrite, 100, 1024, key, 0);
    meet(0);
}
static void give_window_1(void) {
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = {mr, (uintptr_t)memory + 1024, 1024,
                                                                             IBV_ACCESS_REMOTE_WRITE}};
    check(mw != NULL, "alloc_mw");
    check(!ibv_bind_mw(qp, mw, &bind), "bind_mw");
    completion("bind");
    check(write(connection, &mw->rkey, sizeof mw->rkey) == sizeof mw->rkey, "send key");
    meet(0);
    bind.bind_info.length = 0;
    check(!ibv_bind_mw(qp, mw, &bind), "bind_mw of 0 bytes");
    completion("unbind");
    meet(0);
    meet(0);
    ibv_dealloc_mw(mw);
}
static void big(void) { ask("WRITE 100000", kWrite, 100000, 0, other.key, 0); }
static void key(void) { ask("WRITE, wrong key", kWrite, 8, 0, other.key ^ 0x55, 0); }
static void bounds(void) {
    post(kWrite, 3000, kSize - 2000, other.key, 0);
    post(kWrite, 8, 0, other.key, 0);
    completion("WRITE past the end");
    completion("WRITE after it");
}
static void denied(void) { ask("WRITE to a read-only region", kWrite, 8, 0, other.other_key, 0); }
static void send_one(void) { ask("SEND 8", kSend, 8, 0, 0, 0); }
static void send_long(void) {
    meet(0);
    ask("SEND 3000 into 1500", kSend, 3000, 0, 0, 0);
}
static void write_two(void) {
    post(kWrite, 8, 0, other.key, 0);
    post(kWrite, 8, 0, other.key, 0);
    completion("WRITE");
    completion("WRITE");
}
static void write_one(void) { ask("WRITE 8", kWrite, 8, 0, other.key, 0); }
static void write_packet(void) { ask("WRITE 1024 to a responder of MTU 256", kWrite, 1024, 0, other.key, 0); }

static const struct Case {
    const char *name;
    void (*request)(void), (*respond)(void);
    int ahead, wrong_qpn;  // The requester's first PSN is ahead; it sends to a wrong queue pair number.
    enum ibv_mtu respond_mtu;
} kCases[] = {
    {"send", send_, take5, 0, 0, IBV_MTU_1024},          {"write", write_, take2, 0, 0, IBV_MTU_1024},
    {"read", read_, NULL, 0, 0, IBV_MTU_1024},           {"atomic", atomic, zero, 0, 0, IBV_MTU_1024},
    {"window", window, give_window, 0, 0, IBV_MTU_1024}, {"big", big, NULL, 0, 0, IBV_MTU_1024},
    {"window1", window_1, give_window_1, 0, 0, IBV_MTU_1024},
    {"key", key, NULL, 0, 0, IBV_MTU_1024},              {"bounds", bounds, NULL, 0, 0, IBV_MTU_1024},
    {"denied", denied, NULL, 0, 0, IBV_MTU_1024},        {"rnr", send_one, take_late, 0, 0, IBV_MTU_1024},
    {"starve", send_one, NULL, 0, 0, IBV_MTU_1024},      {"long", send_long, take_short, 0, 0, IBV_MTU_1024},
    {"gap", write_two, NULL, 1, 0, IBV_MTU_1024},        {"behind", write_two, NULL, -1, 0, IBV_MTU_1024},
    {"silent", write_one, NULL, 0, 1, IBV_MTU_1024},     {"mtu", write_packet, NULL, 0, 0, IBV_MTU_256},
};

static void run(const char *name) {
    for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
        const struct Case *it = &kCases[i];
        if (strcmp(it->name, name)) continue;
        printf("%s\n", name);
        if (requester) open_qp(name, it->ahead, it->wrong_qpn, IBV_MTU_1024);
        else open_qp(name, 0, 0, it->respond_mtu);
        if (requester) it->request();
        else if (it->respond) it->respond();
        close_qp();
        return;
    }
    fprintf(stderr, "no case %s\n", name);
    exit(2);
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    requester = count > 2 && !strcmp(words[1], "-c");
    if (getenv("GID")) gid_index = atoi(getenv("GID"));
    struct ibv_device **devices = ibv_get_device_list(NULL);
    check(devices && devices[0] && (context = ibv_open_device(devices[0])) != NULL, "open_device");
    check((pd = ibv_alloc_pd(context)) != NULL, "alloc_pd");
    check((cq = ibv_create_cq(context, 64, NULL, NULL, 0)) != NULL, "create_cq");
    int reading = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    int all = reading | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
    check((mr = ibv_reg_mr(pd, memory, kSize, all)) != NULL, "reg_mr");
    check((read_only = ibv_reg_mr(pd, memory, kSize, reading)) != NULL, "reg_mr");
    for (int i = 0; i < kSize; ++i) memory[i] = requester ? 'a' + i % 26 : '0' + i % 10;
    dial(requester ? words[2] : NULL);
    for (int i = requester ? 3 : 1; i < count; ++i) run(words[i]);
    return 0;
}
