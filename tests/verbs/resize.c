/* Completion queues that are resized while completions lie there and come, for tests/scripts/run_resize.sh. */
#include "ends.h"

static struct end a, b;
static uint64_t posted, seen;
static unsigned long random_state = 1;

static unsigned below(unsigned most)
{
    random_state = random_state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(random_state >> 33) % most;
}

static void write_some(unsigned count)
{
    for (unsigned each = 0; each < count; ++each)
        CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, posted++));
}

static void poll_some(uint64_t count)
{
    for (uint64_t each = 0; each < count; ++each) {
        const struct ibv_wc got = next_completion(a.cq);
        CHECK("in order, none lost, none twice", seen++, got.wr_id);
        CHECK("status", IBV_WC_SUCCESS, got.status);
    }
}

/* Until all that was posted has been executed: completions lie in the ring. */
static void wait_until_written(void)
{
    CHECK("post", 0, post(b.qp, IBV_WR_RDMA_READ, 8, mr->rkey, 0));
    next_completion(b.cq);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void resize(int entries, int expected)
{
    const int before = a.cq->cqe, status = ibv_resize_cq(a.cq, entries);
    CHECK("ibv_resize_cq", expected, status);
    int size = 1;
    while (size < entries + 1)
        size *= 2;
    CHECK("entries", status == 0 ? size - 1 : before, a.cq->cqe);
}

static void with_unread(void)
{
    write_some(20);
    wait_until_written();
    resize(255, 0); /* grows */
    write_some(20);
    poll_some(40);
    write_some(10);
    wait_until_written();
    resize(10, 0); /* shrinks */
    poll_some(10);
    resize(63, 0);
    write_some(30);
    wait_until_written();
    resize(14, EINVAL); /* too small */
    resize(-1, EINVAL);
    poll_some(30);
    resize(14, 0);
    resize(15, 0);
    resize(15, 0); /* as it is */
    resize(63, 0);
}

static void while_others_come(void)
{
    for (unsigned turn = 0; turn < 2000; ++turn) {
        const unsigned in_flight = (unsigned)(posted - seen);
        write_some(below(40 - in_flight));
        resize(41 + (int)below(400), 0);
        poll_some(below((unsigned)(posted - seen) + 1));
    }
    poll_some(posted - seen);
}

static void wait_for_event(struct ibv_comp_channel* channel, struct ibv_cq* cq)
{
    struct pollfd look = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq* about;
    void* none;
    errno = ETIMEDOUT;
    NEED(poll(&look, 1, (int)(patience() * 1000)) == 1);
    NEED(ibv_get_cq_event(channel, &about, &none) == 0);
    CHECK("event", (intptr_t)cq, (intptr_t)about);
    ibv_ack_cq_events(cq, 1);
}

/* What was asked for before the queue was resized is told afterwards, and nothing is that has not come. */
static void events(void)
{
    struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
    struct pollfd look = {.events = POLLIN};
    NEED(channel);
    NEED(a.cq = ibv_create_cq(context, 16, NULL, channel, 0));
    a.qp = make_qp(a.cq, IBV_QPT_RC);
    look.fd = channel->fd;
    connect_ends(a.qp, b.qp, all_rights);
    CHECK("arm", 0, ibv_req_notify_cq(a.cq, 0));
    resize(100, 0);
    CHECK("no event", 0, poll(&look, 1, 50));
    write_some(1);
    wait_for_event(channel, a.cq);
    CHECK("arm", 0, ibv_req_notify_cq(a.cq, 0));
    resize(10, 0);
    CHECK("no event", 0, poll(&look, 1, 50));
    poll_some(1);
    write_some(1);
    wait_for_event(channel, a.cq);
    poll_some(1);
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(a.qp));
    CHECK("ibv_destroy_cq", 0, ibv_destroy_cq(a.cq));
    CHECK("ibv_destroy_comp_channel", 0, ibv_destroy_comp_channel(channel));
}

int main(void)
{
    open_device();
    make_end(&a, 63, IBV_QPT_RC);
    make_end(&b, 63, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    with_unread();
    while_others_come();
    end_end(&a);
    CHECK("ibv_destroy_qp", 0, ibv_destroy_qp(b.qp));
    b.qp = make_qp(b.cq, IBV_QPT_RC);
    events();
    end_end(&b);
    close_device();
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
