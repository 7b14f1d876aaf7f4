/* Two processes on one wire, one of which is killed or stopped; for tests/scripts/run_faults.sh. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

/* What the ends tell each other. */
struct name {
    uint32_t queue, rkey;
    uint64_t address;
    union ibv_gid gid;
};

static int line; /* to the other process */

static struct name exchange(const struct end* mine)
{
    struct name own = {.queue = mine->qp->qp_num, .rkey = mr->rkey, .address = (uintptr_t)memory, .gid = gid}, theirs;
    NEED(write(line, &own, sizeof own) == sizeof own);
    NEED(read(line, &theirs, sizeof theirs) == sizeof theirs);
    return theirs;
}

/* Four transmissions, 33 ms apart: half a second at most with what an engine adds. */
static struct name connect_to_peer(struct end* mine)
{
    const struct name peer = exchange(mine);
    struct ibv_qp_attr receive = rtr_to(peer.queue), send = rts_values();
    receive.ah_attr.grh.dgid = peer.gid;
    send.timeout = 13;
    send.retry_cnt = 3;
    to_init(mine->qp, all_rights);
    CHECK("INIT to RTR", 0, ibv_modify_qp(mine->qp, &receive, rtr_mask_rc));
    CHECK("RTR to RTS", 0, ibv_modify_qp(mine->qp, &send, rts_mask_rc));
    exchange(mine);
    return peer;
}

static int write_to(struct end* from, const struct name* peer)
{
    struct ibv_sge piece = {.addr = (uintptr_t)memory, .length = memory_bytes / 2, .lkey = mr->lkey};
    struct ibv_send_wr entry = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    entry.send_flags = IBV_SEND_SIGNALED;
    entry.wr.rdma.remote_addr = peer->address;
    entry.wr.rdma.rkey = peer->rkey;
    return ibv_post_send(from->qp, &entry, &bad);
}

static void write_until_killed(struct end* mine, const struct name* peer)
{
    for (;;) {
        CHECK("post", 0, write_to(mine, peer));
        CHECK("a write", IBV_WC_SUCCESS, next_completion(mine->cq).status);
    }
}

/* The peer: writes all the time, or only waits to be written to. */
static int be_peer(int writes)
{
    struct end mine;
    open_device();
    make_end(&mine, 64, IBV_QPT_RC);
    const struct name peer = connect_to_peer(&mine);
    if (writes)
        write_until_killed(&mine, &peer);
    pause();
    return 0;
}

static pid_t start_peer(int writes)
{
    int both[2];
    NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, both) == 0);
    const pid_t peer = fork(); // before anything of verbs: the peer has an engine of its own
    if (peer == 0) {
        close(both[0]);
        line = both[1];
        exit(be_peer(writes));
    }
    close(both[1]);
    line = both[0];
    return peer;
}

static void kill_it(pid_t peer)
{
    kill(peer, SIGKILL);
    NEED(waitpid(peer, NULL, 0) == peer);
}

/* A peer that is written to dies: this end hears of it in its time. */
static void target_dies(pid_t peer)
{
    struct end mine;
    make_end(&mine, 64, IBV_QPT_RC);
    const struct name name = connect_to_peer(&mine);
    for (int each = 0; each < 20; ++each) {
        CHECK("post", 0, write_to(&mine, &name));
        CHECK("a write", IBV_WC_SUCCESS, next_completion(mine.cq).status);
    }
    kill_it(peer);
    const double died = seconds();
    CHECK("post", 0, write_to(&mine, &name));
    CHECK("post", 0, write_to(&mine, &name));
    CHECK("a write to nobody", IBV_WC_RETRY_EXC_ERR, next_completion(mine.cq).status);
    CHECK("the next one", IBV_WC_WR_FLUSH_ERR, next_completion(mine.cq).status);
    const double after = seconds() - died;
    fprintf(stderr, "heard of it after %.3f s\n", after);
    CHECK("not before its time", 1, after > 0.1);
    CHECK("the state", IBV_QPS_ERR, state_of(mine.qp));
    end_end(&mine);
}

static void stop_it(pid_t peer)
{
    int status;
    kill(peer, SIGSTOP);
    NEED(waitpid(peer, &status, WUNTRACED) == peer && WIFSTOPPED(status));
}

/* A peer that is stopped for longer than all transmissions take: what was sent to it is late, and arrives. Stopped and
   killed, it is dead. */
static void target_stops(pid_t peer)
{
    struct end mine;
    struct ibv_wc early;
    make_end(&mine, 64, IBV_QPT_RC);
    const struct name name = connect_to_peer(&mine);
    CHECK("post", 0, write_to(&mine, &name));
    CHECK("a write", IBV_WC_SUCCESS, next_completion(mine.cq).status);
    stop_it(peer);
    CHECK("post", 0, write_to(&mine, &name));
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    const int none = ibv_poll_cq(mine.cq, 1, &early);
    CHECK("completions of a write to a stopped peer", 0, none);
    kill(peer, SIGCONT);
    if (none == 0)
        CHECK("a write to a stopped peer that goes on", IBV_WC_SUCCESS, next_completion(mine.cq).status);
    stop_it(peer);
    CHECK("post", 0, write_to(&mine, &name));
    kill_it(peer);
    CHECK("a write to a stopped peer that dies", none == 0 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR,
          next_completion(mine.cq).status);
    end_end(&mine);
}

/* A peer that writes dies: this end lives, with half a message. */
static void source_dies(pid_t peer)
{
    struct end mine;
    make_end(&mine, 64, IBV_QPT_RC);
    connect_to_peer(&mine);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    kill_it(peer);
    CHECK("the state", IBV_QPS_RTS, state_of(mine.qp));
    end_end(&mine);
}

int main(void)
{
    const pid_t target = start_peer(0);
    const int line_of_target = line;
    const pid_t source = start_peer(1);
    const int line_of_source = line;
    const pid_t another = start_peer(0);
    const int line_of_another = line;
    const pid_t stopped = start_peer(0);
    const int line_of_stopped = line;
    open_device();
    line = line_of_target;
    target_dies(target);
    line = line_of_source;
    source_dies(source);
    line = line_of_another;
    target_dies(another);
    line = line_of_stopped;
    target_stops(stopped);
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
