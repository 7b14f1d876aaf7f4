/* What devices cost in descriptors, and what happens without one, for tests/scripts/run_descriptors.sh. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends.h"

/* Descriptors with numbers below the limit: those count. */
static int descriptors(void)
{
    struct rlimit limit;
    NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int count = 0;
    for (int each = 0; each < (int)limit.rlim_cur; ++each)
        count += fcntl(each, F_GETFD) >= 0;
    return count;
}

/* Prints how many descriptors each object takes. */
static void print_costs(void)
{
    struct ibv_device** all = ibv_get_device_list(NULL);
    NEED(all && all[0]);
    int before = descriptors();
    NEED(context = ibv_open_device(all[0]));
    printf("context %d", descriptors() - before);
    before = descriptors();
    struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
    NEED(channel);
    printf(", channel %d", descriptors() - before);
    before = descriptors();
    struct ibv_cq* with = ibv_create_cq(context, 16, NULL, channel, 0);
    NEED(with);
    printf(", queue with a channel %d", descriptors() - before);
    before = descriptors();
    struct ibv_cq* without = ibv_create_cq(context, 16, NULL, NULL, 0);
    NEED(without);
    printf(", without %d", descriptors() - before);
    before = descriptors();
    NEED(pd = ibv_alloc_pd(context));
    struct ibv_qp* pair = make_qp(with, IBV_QPT_RC);
    printf(", queue pair %d\n", descriptors() - before);
    CHECK("destroy", 0,
          ibv_destroy_qp(pair) | ibv_destroy_cq(with) | ibv_destroy_cq(without) | ibv_destroy_comp_channel(channel) |
              ibv_dealloc_pd(pd) | ibv_close_device(context));
}

static void connect_to_itself(struct ibv_qp* pair)
{
    to_init(pair, all_rights);
    to_rtr(pair, pair);
    to_rts(pair);
}

/* Takes all descriptors that are free. Returns the last. */
static int take_all(void)
{
    int last = -1, next;
    while ((next = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        last = next;
    return last;
}

/* From now on the system has no room for another open file: what would make one fails with ENFILE, in each thread. */
static void fill_table_of_system(void)
{
    static const unsigned calls[] = {SYS_open,           SYS_openat,  SYS_openat2,       SYS_socket,
                                     SYS_socketpair,     SYS_accept4, SYS_epoll_create1, SYS_eventfd2,
                                     SYS_memfd_create,   SYS_pipe2,   SYS_inotify_init1, SYS_pidfd_open,
                                     SYS_timerfd_create, SYS_creat};
    enum { count = sizeof calls / sizeof *calls };
    struct sock_filter steps[2 * count + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int each = 0; each < count; ++each) {
        steps[1 + 2 * each] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[each], 0, 1);
        steps[2 + 2 * each] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENFILE);
    }
    steps[2 * count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {2 * count + 2, steps};
    NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    NEED(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0);
}

/* Completion events, which nobody reads, of a queue that is then destroyed while no descriptor is free.
   reason: EMFILE, the process has none; ENFILE, the system. */
static void without_descriptors(int reason)
{
    struct ibv_device** all = ibv_get_device_list(NULL);
    struct end a;
    int last = -1;
    open_device();
    struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
    NEED(channel);
    NEED(a.cq = ibv_create_cq(context, 16, NULL, channel, 0));
    a.qp = make_qp(a.cq, IBV_QPT_RC);
    connect_to_itself(a.qp);
    NEED(ibv_req_notify_cq(a.cq, 0) == 0);
    if (reason == ENFILE)
        fill_table_of_system();
    else
        last = take_all();
    errno = 0;
    CHECK("no context", reason, ibv_open_device(all[0]) == NULL ? errno : 0);
    errno = 0;
    CHECK("no channel", reason, ibv_create_comp_channel(context) == NULL ? errno : 0);
    struct ibv_cq* other = ibv_create_cq(context, 16, NULL, channel, 0);
    NEED(other);
    CHECK("destroy", 0, ibv_destroy_cq(other));
    CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    CHECK("write", IBV_WC_SUCCESS, next_completion(a.cq).status);
    struct pollfd look = {.fd = channel->fd, .events = POLLIN};
    CHECK("an event", 1, poll(&look, 1, (int)(patience() * 1000)));
    end_end(&a); /* waits for acknowledgments of events that were read: none was */
    for (int each = last - 3; each <= last; ++each)
        close(each);
    struct ibv_context* later = reason == EMFILE ? ibv_open_device(all[0]) : NULL;
    if (reason == EMFILE)
        CHECK("a context, once there are descriptors", 1, later != NULL && ibv_close_device(later) == 0);
    CHECK("destroy", 0, ibv_destroy_comp_channel(channel));
    close_device();
}

/* No device is found when the table is full from the beginning. */
static void full_from_the_beginning(void)
{
    int count = -1;
    fill_table_of_system();
    ibv_get_device_list(&count);
    CHECK("devices", 0, count);
}

struct connection {
    int socket;
    struct ibv_comp_channel* channel;
    struct ibv_cq *sends, *receives;
    struct ibv_qp* pair;
};

/* Connections as servers make them: each with a socket, a channel, and two completion queues. */
static void many_connections(int count)
{
    struct connection* all = calloc((size_t)count, sizeof *all);
    NEED(all);
    open_device();
    for (int each = 0; each < count; ++each) {
        struct connection* to = &all[each];
        NEED((to->socket = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        NEED(to->channel = ibv_create_comp_channel(context));
        NEED(to->sends = ibv_create_cq(context, 16, NULL, to->channel, 0));
        NEED(to->receives = ibv_create_cq(context, 16, NULL, to->channel, 0));
        struct ibv_qp_init_attr wanted = {
            .send_cq = to->sends, .recv_cq = to->receives, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        NEED(to->pair = ibv_create_qp(pd, &wanted));
        connect_to_itself(to->pair);
        NEED(ibv_req_notify_cq(to->receives, 0) == 0);
        CHECK("receive", 0, post_receive(to->pair, 64, 7));
    }
    for (int each = 0; each < count; ++each)
        CHECK("send", 0, post(all[each].pair, IBV_WR_SEND, 8, 0, 8));
    for (int each = 0; each < count; ++each) {
        struct pollfd look = {.fd = all[each].channel->fd, .events = POLLIN};
        struct ibv_cq* about = NULL;
        void* given;
        errno = ETIMEDOUT;
        NEED(poll(&look, 1, (int)(patience() * 1000)) == 1);
        CHECK("event", 0, ibv_get_cq_event(all[each].channel, &about, &given));
        CHECK("its queue", (intptr_t)all[each].receives, (intptr_t)about);
        ibv_ack_cq_events(about, 1);
        CHECK("received", 7, next_completion(all[each].receives).wr_id);
        CHECK("sent", 8, next_completion(all[each].sends).wr_id);
    }
    for (int each = 0; each < count; ++each) {
        struct connection* of = &all[each];
        CHECK("destroy", 0,
              ibv_destroy_qp(of->pair) | ibv_destroy_cq(of->sends) | ibv_destroy_cq(of->receives) |
                  ibv_destroy_comp_channel(of->channel) | close(of->socket));
    }
    close_device();
    free(all);
}

static void many_pairs(int count)
{
    struct ibv_qp** all = calloc((size_t)count, sizeof *all);
    struct ibv_cq* queue;
    NEED(all);
    open_device();
    NEED(queue = ibv_create_cq(context, 2 * count, NULL, NULL, 0));
    for (int each = 0; each < count; ++each)
        all[each] = make_qp(queue, IBV_QPT_RC);
    for (int each = 0; each < count; each += 2)
        connect_ends(all[each], all[each + 1], all_rights);
    for (int each = 0; each < count; ++each)
        CHECK("post", 0, post(all[each], IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    for (int each = 0; each < count; ++each)
        CHECK("write", IBV_WC_SUCCESS, next_completion(queue).status);
    for (int each = 0; each < count; ++each)
        CHECK("destroy", 0, ibv_destroy_qp(all[each]));
    CHECK("destroy", 0, ibv_destroy_cq(queue));
    close_device();
    free(all);
}

/* A program that closes descriptors which it has not opened, after it has looked for devices. REUSES: it opens others,
 * which get the engine's numbers. */
static void closes_all(int reuses)
{
    enum { many = 40 };
    struct ibv_device** all = ibv_get_device_list(NULL);
    char name[64], line[256];
    int own[many];
    NEED(all && all[0]);
    closefrom(3);
    for (int each = 0; reuses && each < many; ++each)
        NEED((own[each] = epoll_create1(0)) == 3 + each);
    const int before = descriptors();
    for (int each = 0; each < 3; ++each)
        CHECK("no context", 1, ibv_open_device(all[0]) == NULL);
    CHECK("descriptors", before, descriptors());
    for (int each = 0; reuses && each < many; ++each) {
        snprintf(name, sizeof name, "/proc/self/fdinfo/%d", own[each]);
        FILE* const file = fopen(name, "r");
        NEED(file);
        while (fgets(line, sizeof line, file))
            CHECK("what the program's epoll watches", 0, strncmp(line, "tfd:", 4) == 0);
        fclose(file);
    }
    ibv_free_device_list(all);
}

int main(int count, char** arguments)
{
    const char* what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "costs") == 0)
        print_costs();
    else if (strcmp(what, "none") == 0)
        without_descriptors(EMFILE);
    else if (strcmp(what, "full") == 0)
        without_descriptors(ENFILE);
    else if (strcmp(what, "full from the beginning") == 0)
        full_from_the_beginning();
    else if (strcmp(what, "closes all") == 0)
        closes_all(0);
    else if (strcmp(what, "closes all and opens others") == 0)
        closes_all(1);
    else if (strcmp(what, "connections") == 0)
        many_connections(200);
    else
        many_pairs(1000);
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
