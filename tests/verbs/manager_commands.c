/*
 * Writes to /dev/infiniband/rdma_cm the commands to which librdmacm falls back where those with sizes of addresses are
 * refused: BIND_IP, RESOLVE_IP, QUERY_ROUTE, JOIN_IP_MCAST. For tests/scripts/run_connections.sh.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

/* Of rdma/rdma_cma.h, which cannot be included beside this one. */
enum { address_resolved = 0, route_resolved = 2, multicast_join = 12 };

static void require(int is, const char* what)
{
    if (is)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static int manager;

/* Writes a command with its header. */
static void give(uint32_t number, const void* body, size_t bytes, size_t room, const char* what)
{
    struct {
        struct rdma_ucm_cmd_hdr header;
        char body[1024];
    } all = {.header = {.cmd = number, .in = (uint16_t)bytes, .out = (uint16_t)room}};
    memcpy(all.body, body, bytes);
    const ssize_t length = (ssize_t)(sizeof all.header + bytes);
    require(write(manager, &all, (size_t)length) == length, what);
}

static uint32_t create(uint16_t space)
{
    struct rdma_ucm_create_id_resp made = {0};
    struct rdma_ucm_create_id body = {.uid = 7, .response = (uintptr_t)&made, .ps = space};
    give(RDMA_USER_CM_CMD_CREATE_ID, &body, sizeof body, sizeof made, "CREATE_ID");
    return made.id;
}

static struct sockaddr_in6 address(const char* text, int port)
{
    struct sockaddr_in6 made = {0};
    struct sockaddr_in* ipv4 = (struct sockaddr_in*)&made;
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons((uint16_t)port);
    inet_pton(AF_INET, text, &ipv4->sin_addr);
    return made;
}

static void bind_to(uint32_t id, const char* text, int port)
{
    struct rdma_ucm_bind_ip body = {.id = id, .addr = address(text, port)};
    give(RDMA_USER_CM_CMD_BIND_IP, &body, sizeof body, 0, "BIND_IP");
}

/* The next event, within 10 s. */
static struct rdma_ucm_event_resp next_event(uint32_t code, const char* what)
{
    struct rdma_ucm_event_resp got = {0};
    struct rdma_ucm_get_event body = {.response = (uintptr_t)&got};
    struct pollfd waits = {.fd = manager, .events = POLLIN};
    require(poll(&waits, 1, 10000) == 1, what);
    give(RDMA_USER_CM_CMD_GET_EVENT, &body, sizeof body, sizeof got, what);
    require(got.event == code && got.status == 0 && got.uid == 7, what);
    return got;
}

static void check_route(uint32_t id, int paths)
{
    struct rdma_ucm_query_route_resp got = {0};
    struct rdma_ucm_query body = {.response = (uintptr_t)&got, .id = id};
    give(RDMA_USER_CM_CMD_QUERY_ROUTE, &body, sizeof body, sizeof got, "QUERY_ROUTE");
    const struct sockaddr_in *from = (struct sockaddr_in*)&got.src_addr, *to = (struct sockaddr_in*)&got.dst_addr;
    const uint8_t* const gid = got.ib_route[0].sgid;
    require(got.node_guid != 0 && got.port_num == 1 && got.num_paths == (uint32_t)paths, "QUERY_ROUTE: the device");
    require(to->sin_family == AF_INET && to->sin_port == htons(7475), "QUERY_ROUTE: the peer's address");
    require(from->sin_family == AF_INET && from->sin_port != 0, "QUERY_ROUTE: the own address");
    require(memcmp(gid + 12, &from->sin_addr, 4) == 0 && gid[10] == 0xff, "QUERY_ROUTE: the own GID");
    require(got.ib_route[0].pkey == 0xffff && got.ib_route[0].mtu >= 1, "QUERY_ROUTE: partition and MTU");
}

static void join(uint32_t id)
{
    struct rdma_ucm_create_id_resp made = {0};
    struct rdma_ucm_join_ip_mcast body = {.response = (uintptr_t)&made, .uid = 7, .id = id};
    body.addr = address("239.1.2.3", 0);
    give(RDMA_USER_CM_CMD_JOIN_IP_MCAST, &body, sizeof body, sizeof made, "JOIN_IP_MCAST");
    const struct rdma_ucm_event_resp got = next_event(multicast_join, "the event of the group");
    require(got.id == made.id && got.param.ud.qp_num == 0xffffff, "the group's queue");
    struct rdma_ucm_destroy_id_resp left = {0};
    struct rdma_ucm_destroy_id leave = {.response = (uintptr_t)&left, .id = made.id};
    give(RDMA_USER_CM_CMD_LEAVE_MCAST, &leave, sizeof leave, sizeof left, "LEAVE_MCAST");
    require(left.events_reported == 1, "LEAVE_MCAST: events");
}

int main(void)
{
    manager = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    require(manager >= 0, "open");
    const uint32_t listener = create(RDMA_PS_TCP), client = create(RDMA_PS_TCP), datagrams = create(RDMA_PS_UDP);
    bind_to(listener, "0.0.0.0", 7475);
    struct rdma_ucm_listen listens = {.id = listener, .backlog = 1};
    give(RDMA_USER_CM_CMD_LISTEN, &listens, sizeof listens, 0, "LISTEN");
    struct rdma_ucm_resolve_ip body = {.dst_addr = address("127.0.0.1", 7475), .id = client, .timeout_ms = 2000};
    give(RDMA_USER_CM_CMD_RESOLVE_IP, &body, sizeof body, 0, "RESOLVE_IP");
    next_event(address_resolved, "the event of the address");
    check_route(client, 0);
    struct rdma_ucm_resolve_route route = {.id = client, .timeout_ms = 2000};
    give(RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof route, 0, "RESOLVE_ROUTE");
    next_event(route_resolved, "the event of the route");
    check_route(client, 1);
    bind_to(datagrams, "127.0.0.1", 0);
    struct rdma_ucm_resolve_ip group = {.dst_addr = address("239.1.2.3", 7475), .id = datagrams, .timeout_ms = 2000};
    give(RDMA_USER_CM_CMD_RESOLVE_IP, &group, sizeof group, 0, "RESOLVE_IP of a group");
    next_event(address_resolved, "the event of the group's address");
    join(datagrams);
    return close(manager) == 0 ? 0 : 1;
}
