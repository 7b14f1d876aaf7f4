/*
 * Threads and parents that end, for tests/scripts/run_connections.sh.
 *
 *   manager_lives cancel      a thread in rdma_get_cm_event() is cancelled
 *   manager_lives fork PORT   listens, leaves a child of fork() that sleeps, and ends; writes the child's number
 *   manager_lives bind PORT   takes the port
 *   manager_lives small PORT  tries the same without being allowed to write files, and returns the errno
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static void require(int is, const char* what)
{
    if (is)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void* waits(void* channel)
{
    struct rdma_cm_event* event;
    rdma_get_cm_event(channel, &event);
    return NULL;
}

static int cancel(void)
{
    struct rdma_event_channel* const channel = rdma_create_event_channel();
    require(channel != NULL, "rdma_create_event_channel");
    pthread_t thread;
    void* result = NULL;
    require(pthread_create(&thread, NULL, waits, channel) == 0, "pthread_create");
    usleep(200000); /* most likely it waits by now; it is cancelled before that too */
    require(pthread_cancel(thread) == 0, "pthread_cancel");
    alarm(20);
    require(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "pthread_join");
    struct rdma_cm_id* id;
    require(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && rdma_destroy_id(id) == 0, "rdma_create_id");
    rdma_destroy_event_channel(channel);
    return 0;
}

static void take(int port)
{
    struct rdma_event_channel* const channel = rdma_create_event_channel();
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct rdma_cm_id* id;
    require(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    require(rdma_bind_addr(id, (struct sockaddr*)&at) == 0, "rdma_bind_addr");
    require(rdma_listen(id, 1) == 0, "rdma_listen");
}

static int leave_child(int port)
{
    take(port);
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
        fclose(stdout);
        sleep(30);
        _exit(0);
    }
    printf("%d\n", (int)child);
    fflush(stdout);
    _exit(0); /* its objects do not end one by one */
}

static int take_without_files(int port)
{
    struct rdma_event_channel* const channel = rdma_create_event_channel();
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const struct rlimit none = {0, 0};
    struct rdma_cm_id* id;
    require(channel && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    require(setrlimit(RLIMIT_FSIZE, &none) == 0, "setrlimit"); /* later than the wire, which is a file, too */
    return rdma_bind_addr(id, (struct sockaddr*)&at) == 0 ? 0 : errno;
}

int main(int count, char** words)
{
    if (count == 2 && strcmp(words[1], "cancel") == 0)
        return cancel();
    if (count == 3 && strcmp(words[1], "fork") == 0)
        return leave_child(atoi(words[2]));
    if (count == 3 && strcmp(words[1], "small") == 0)
        return take_without_files(atoi(words[2]));
    if (count == 3 && strcmp(words[1], "bind") == 0) {
        take(atoi(words[2]));
        return 0;
    }
    return 2;
}
