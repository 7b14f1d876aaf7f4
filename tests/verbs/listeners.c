/*
 * Listens at one port of 0.0.0.0 and of [::], as tgtd does, for tests/scripts/run_connections.sh.
 *
 *   listeners PORT FIRST SECOND     families in the order in which they listen: 4 6, or 6 4
 *
 * Refuses the first request. Exit status 0: it came to the listener of IPv4.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

static void require(int result, const char* what)
{
    if (result == 0)
        return;
    perror(what);
    exit(1);
}

static struct rdma_cm_id* listen_at(struct rdma_event_channel* channel, int family, int port)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct rdma_cm_id* made;
    int yes = 1;
    require(rdma_create_id(channel, &made, NULL, RDMA_PS_TCP), "rdma_create_id");
    if (family == 6)
        require(rdma_set_option(made, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof yes), "rdma_set_option");
    require(rdma_bind_addr(made, family == 6 ? (struct sockaddr*)&ipv6 : (struct sockaddr*)&ipv4), "rdma_bind_addr");
    require(rdma_listen(made, 8), "rdma_listen");
    return made;
}

int main(int count, char** words)
{
    if (count != 4)
        return 2;
    struct rdma_event_channel* channel = rdma_create_event_channel();
    if (channel == NULL)
        return 1;
    struct rdma_cm_id* made[2];
    for (int each = 0; each != 2; ++each)
        made[each] = listen_at(channel, atoi(words[2 + each]), atoi(words[1]));
    struct rdma_cm_event* event;
    require(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    struct rdma_cm_id *asked = event->listen_id, *request = event->id;
    require(event->event != RDMA_CM_EVENT_CONNECT_REQUEST, rdma_event_str(event->event));
    require(rdma_reject(request, NULL, 0), "rdma_reject");
    require(rdma_ack_cm_event(event), "rdma_ack_cm_event");
    require(rdma_destroy_id(request), "rdma_destroy_id");
    const int wrong = asked != made[atoi(words[2]) == 4 ? 0 : 1];
    for (int each = 0; each != 2; ++each)
        require(rdma_destroy_id(made[each]), "rdma_destroy_id");
    return wrong;
}
