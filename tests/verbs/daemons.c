/*
 * Children of fork() and daemons, for tests/scripts/run_daemons.sh: they open devices of their own after any order of
 * list, fork, end of the parent, and close.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

/* A device, from the list to a write between two queue pairs on it. `devices`: a list made before; NULL: makes one. */
static void use_device(struct ibv_device** devices)
{
    struct end a, b;
    struct ibv_device** all = devices ? devices : ibv_get_device_list(NULL);
    NEED(all && all[0]);
    NEED(context = ibv_open_device(all[0]));
    NEED(pd = ibv_alloc_pd(context));
    NEED(mr = ibv_reg_mr(pd, memory, sizeof memory, all_rights));
    NEED(ibv_query_gid(context, 1, 0, &gid) == 0);
    make_end(&a, 16, IBV_QPT_RC);
    make_end(&b, 16, IBV_QPT_RC);
    connect_ends(a.qp, b.qp, all_rights);
    memory[0] = 42;
    memory[memory_bytes / 2] = 0;
    CHECK("post", 0, post(a.qp, IBV_WR_RDMA_WRITE, 8, mr->rkey, 1));
    CHECK("write", IBV_WC_SUCCESS, next_completion(a.cq).status);
    CHECK("written", 42, memory[memory_bytes / 2]);
    end_end(&a);
    end_end(&b);
    close_device();
    if (!devices)
        ibv_free_device_list(all);
}

/* The number of failed checks of a child; 99: it was killed. */
static int end_of(pid_t child)
{
    int status = 0;
    NEED(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static pid_t start_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    NEED(child >= 0);
    if (child == 0)
        failed_checks = 0;
    return child;
}

static struct ibv_device** list;

static void listed_before_fork(void)
{
    NEED(list = ibv_get_device_list(NULL));
    for (int each = 0; each < 2; ++each) { /* two children of one parent */
        pid_t child = start_child();
        if (child == 0) {
            use_device(list);
            use_device(NULL);
            exit(failed_checks);
        }
        CHECK("a child opens what its parent has listed", 0, end_of(child));
    }
    ibv_free_device_list(list);
    pid_t child = start_child();
    if (child == 0) {
        use_device(NULL);
        exit(failed_checks);
    }
    CHECK("a child lists again", 0, end_of(child));
    use_device(NULL);
}

static void* in_thread(void* failed)
{
    struct ibv_device** all = ibv_get_device_list(NULL);
    struct ibv_context* opened = all && all[0] ? ibv_open_device(all[0]) : NULL;
    struct ibv_port_attr port;
    if (!opened || ibv_query_port(opened, 1, &port) != 0 || ibv_close_device(opened) != 0)
        ++*(int*)failed;
    return NULL;
}

static void opened_before_fork(void)
{
    struct end mine;
    open_device();
    make_end(&mine, 16, IBV_QPT_RC);
    struct ibv_context* const parents = context;
    pid_t child = start_child();
    if (child == 0) {
        CHECK("the parent's device", 1, ibv_alloc_pd(parents) == NULL && errno == EIO);
        use_device(NULL);
        pthread_t thread;
        pthread_create(&thread, NULL, in_thread, &failed_checks);
        pthread_join(thread, NULL);
        CHECK("the parent's device after that", 1, ibv_alloc_pd(parents) == NULL && errno == EIO);
        CHECK("the parent's device is closed", 0, ibv_close_device(parents));
        use_device(NULL);
        exit(failed_checks);
    }
    CHECK("a child of a parent with open devices", 0, end_of(child));
    to_init(mine.qp, all_rights); /* the parent's are as they were */
    end_end(&mine);
    close_device();
    child = start_child();
    if (child == 0) {
        use_device(NULL);
        exit(failed_checks);
    }
    CHECK("a child of a parent that has closed its device", 0, end_of(child));
}

static void generations(void)
{
    open_device();
    pid_t child = start_child();
    if (child == 0) {
        use_device(NULL);
        pid_t grandchild = start_child();
        if (grandchild == 0) {
            use_device(NULL);
            exit(failed_checks);
        }
        CHECK("a child of a child", 0, end_of(grandchild));
        use_device(NULL);
        exit(failed_checks);
    }
    CHECK("a child that has a child", 0, end_of(child));
    close_device();
}

/* As daemon(3), with `leave` for the parent's end. The test waits for "done" in the output. */
static void become_daemon(void (*leave)(int))
{
    fflush(stdout);
    const pid_t parent = getpid(), child = fork();
    NEED(child >= 0);
    if (child > 0)
        leave(0);
    setsid();
    NEED(chdir("/") == 0);
    while (getppid() == parent)
        usleep(1000);
}

int main(int count, char** arguments)
{
    const char* what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "exit") == 0 || strcmp(what, "_exit") == 0 || strcmp(what, "open") == 0) {
        NEED(list = ibv_get_device_list(NULL));
        struct ibv_context* parents = strcmp(what, "open") == 0 ? ibv_open_device(list[0]) : NULL;
        become_daemon(strcmp(what, "exit") == 0 ? exit : _exit);
        if (parents)
            CHECK("the parent's device", 1, ibv_alloc_pd(parents) == NULL && errno == EIO);
        use_device(list);
        use_device(NULL);
    } else if (strcmp(what, "close") == 0) { /* all descriptors, as many daemons do */
        NEED(list = ibv_get_device_list(NULL));
        NEED(ibv_open_device(list[0]));
        become_daemon(_exit);
        closefrom(3);
        use_device(list);
    } else {
        listed_before_fork();
        opened_before_fork();
        generations();
    }
    printf("%d checks failed\n", failed_checks);
    return failed_checks != 0;
}
