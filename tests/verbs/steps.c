/*
 * Calls librdmacm step by step, for tests/scripts/run_peers.sh. Identifiers have no queue pair. Each word is a step:
 *
 *   create            makes an identifier, number 0, 1, ..., which the steps behind it use; a request makes one, too
 *   use=N             goes back to identifier N
 *   afonly=X reuse=X  sets the option
 *   bind=ADDRESS/PORT
 *   listen=BACKLOG
 *   resolve=ADDRESS/PORT/MILLISECONDS
 *   route connect establish accept reject disconnect destroy
 *   event             waits for an event and writes its name, its status, the listener of a request, and the
 *                     identifier if it is another than the steps use
 *   quiet=MILLISECONDS  writes "quiet" if no event comes
 *   until=FILE        waits until the file is there
 *   wait              waits for a signal
 *   exec              becomes sleep(1)
 *
 * A step that fails is written with its reason, and the next one follows.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static struct rdma_event_channel* channel;
static struct rdma_cm_id* made[64];
static int count, current;

static struct rdma_cm_id* now(void)
{
    return made[current];
}

static int keep(struct rdma_cm_id* id)
{
    if (count == 64)
        return -1;
    made[count] = id;
    current = count++;
    return 0;
}

static int create(const char* text)
{
    (void)text;
    struct rdma_cm_id* id;
    return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ? -1 : keep(id);
}

static int use(const char* text)
{
    current = atoi(text);
    return 0;
}

static int set(int option, const char* text)
{
    int value = atoi(text);
    return rdma_set_option(now(), RDMA_OPTION_ID, option, &value, sizeof value);
}

static int afonly(const char* text)
{
    return set(RDMA_OPTION_ID_AFONLY, text);
}

static int reuse(const char* text)
{
    return set(RDMA_OPTION_ID_REUSEADDR, text);
}

/* ADDRESS/PORT, and what stands behind a second slash. */
static struct sockaddr_storage address_of(const char* text, int* rest)
{
    struct sockaddr_storage made_of = {0};
    char address[64] = "";
    int port = 0;
    sscanf(text, "%63[^/]/%d/%d", address, &port, rest);
    struct sockaddr_in* const ipv4 = (struct sockaddr_in*)&made_of;
    struct sockaddr_in6* const ipv6 = (struct sockaddr_in6*)&made_of;
    if (inet_pton(AF_INET, address, &ipv4->sin_addr) == 1) {
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons((uint16_t)port);
    } else if (inet_pton(AF_INET6, address, &ipv6->sin6_addr) == 1) {
        ipv6->sin6_family = AF_INET6;
        ipv6->sin6_port = htons((uint16_t)port);
    }
    return made_of;
}

static int bind_to(const char* text)
{
    int rest = 0;
    struct sockaddr_storage to = address_of(text, &rest);
    return rdma_bind_addr(now(), (struct sockaddr*)&to);
}

static int listen_for(const char* text)
{
    return rdma_listen(now(), atoi(text));
}

static int resolve(const char* text)
{
    int timeout = 2000;
    struct sockaddr_storage to = address_of(text, &timeout);
    return rdma_resolve_addr(now(), NULL, (struct sockaddr*)&to, timeout);
}

static int route(const char* text)
{
    (void)text;
    return rdma_resolve_route(now(), 2000);
}

static struct rdma_conn_param parameters(void)
{
    return (struct rdma_conn_param){.qp_num = 0x100000 + (uint32_t)getpid() % 0x10000 * 64 + (uint32_t)current,
                                    .retry_count = 7};
}

static int connect_to(const char* text)
{
    (void)text;
    struct rdma_conn_param with = parameters();
    return rdma_connect(now(), &with);
}

static int accept_it(const char* text)
{
    (void)text;
    struct rdma_conn_param with = parameters();
    return rdma_accept(now(), &with);
}

static int establish(const char* text)
{
    (void)text;
    return rdma_establish(now());
}

static int reject(const char* text)
{
    (void)text;
    return rdma_reject(now(), NULL, 0);
}

static int disconnect(const char* text)
{
    (void)text;
    return rdma_disconnect(now());
}

static int destroy(const char* text)
{
    (void)text;
    return rdma_destroy_id(now());
}

static int event(const char* text)
{
    (void)text;
    struct rdma_cm_event* told;
    if (rdma_get_cm_event(channel, &told))
        return -1;
    printf("%s %d", rdma_event_str(told->event), told->status);
    if (told->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        for (int each = 0; each != count; ++each)
            if (made[each] == told->listen_id)
                printf(" at %d", each);
        if (keep(told->id))
            return -1;
    } else {
        for (int each = 0; each != count; ++each)
            if (made[each] == told->id && each != current)
                printf(" of %d", each);
    }
    printf("\n");
    return rdma_ack_cm_event(told);
}

static int quiet(const char* text)
{
    struct pollfd one = {.fd = channel->fd, .events = POLLIN};
    if (poll(&one, 1, atoi(text)) == 0)
        printf("quiet\n");
    return 0;
}

static int until(const char* text)
{
    while (access(text, F_OK))
        usleep(2000);
    return 0;
}

static int wait_for_signal(const char* text)
{
    (void)text;
    return pause();
}

static int become_other(const char* text)
{
    (void)text;
    return execlp("sleep", "sleep", "60", NULL);
}

static const struct {
    const char* name;
    int (*call)(const char* text);
} all[] = {{"create", create},         {"use", use},
           {"afonly", afonly},         {"reuse", reuse},
           {"bind", bind_to},          {"listen", listen_for},
           {"resolve", resolve},       {"route", route},
           {"accept", accept_it},      {"connect", connect_to},
           {"establish", establish},   {"reject", reject},
           {"event", event},           {"quiet", quiet},
           {"disconnect", disconnect}, {"destroy", destroy},
           {"until", until},           {"wait", wait_for_signal},
           {"exec", become_other}};

static void step(const char* word)
{
    const size_t length = strcspn(word, "=");
    for (size_t each = 0; each != sizeof all / sizeof *all; ++each)
        if (strlen(all[each].name) == length && strncmp(all[each].name, word, length) == 0) {
            if (all[each].call(word[length] ? word + length + 1 : ""))
                printf("%s: %s\n", word, strerror(errno));
            return;
        }
    printf("%s: no such step\n", word);
}

int main(int words, char** word)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    channel = rdma_create_event_channel();
    if (channel == NULL)
        return 1;
    for (int each = 1; each != words; ++each)
        step(word[each]);
    return 0;
}
