#include <arpa/inet.h>
#include <doca_log.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "end.h"

DOCA_LOG_REGISTER(RDMA_WRITE::SOCKET);

#define MOST_BYTES (1U << 20)

static doca_error_t failed(const char* what)
{
    DOCA_LOG_ERR("%s: %s", what, strerror(errno));
    return DOCA_ERROR_CONNECTION_ABORTED;
}

/* The port is printed, as it may be any. */
static doca_error_t accept_client(struct end* all, struct sockaddr_in* address)
{
    const int yes = 1;
    socklen_t size = sizeof *address;
    int listening = socket(AF_INET, SOCK_STREAM, 0);

    if (listening < 0)
        return failed("socket");
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listening, (struct sockaddr*)address, size) != 0 || listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr*)address, &size) != 0) {
        close(listening);
        return failed("The port of the server");
    }
    printf("The server waits at TCP port %u\n", ntohs(address->sin_port));
    fflush(stdout);
    all->socket = accept(listening, NULL, NULL);
    close(listening);
    return all->socket < 0 ? failed("accept") : DOCA_SUCCESS;
}

doca_error_t meet_peer(struct end* all)
{
    const int yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)all->settings->socket_port)};
    doca_error_t result = DOCA_SUCCESS;

    if (!all->is_client)
        result = accept_client(all, &address);
    else if (inet_pton(AF_INET, all->settings->server_ip, &address.sin_addr) != 1) {
        DOCA_LOG_ERR("\"%s\" is no IPv4 address", all->settings->server_ip);
        return DOCA_ERROR_INVALID_VALUE;
    } else {
        all->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (all->socket < 0 || connect(all->socket, (struct sockaddr*)&address, sizeof address) != 0)
            result = failed("The server is not reached");
    }
    if (result == DOCA_SUCCESS)
        setsockopt(all->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return result;
}

static doca_error_t send_all(struct end* all, const void* bytes, size_t size)
{
    const char* at = bytes;

    while (size > 0) {
        const ssize_t sent = send(all->socket, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return failed("The peer's program has gone");
        at += sent;
        size -= (size_t)sent;
    }
    return DOCA_SUCCESS;
}

static doca_error_t receive_all(struct end* all, void* bytes, size_t size)
{
    const ssize_t got = size > 0 ? recv(all->socket, bytes, size, MSG_WAITALL) : 0;

    if (got < 0)
        return failed("The peer's program has gone");
    if ((size_t)got != size) {
        DOCA_LOG_ERR("The peer's program has ended");
        return DOCA_ERROR_CONNECTION_ABORTED;
    }
    return DOCA_SUCCESS;
}

doca_error_t send_bytes(struct end* all, const void* bytes, size_t size)
{
    const uint32_t size_be = htonl((uint32_t)size);
    doca_error_t result = send_all(all, &size_be, sizeof size_be);

    return result == DOCA_SUCCESS ? send_all(all, bytes, size) : result;
}

doca_error_t receive_bytes(struct end* all, void** bytes, size_t* size)
{
    uint32_t size_be;
    doca_error_t result = receive_all(all, &size_be, sizeof size_be);

    *bytes = NULL;
    if (result != DOCA_SUCCESS)
        return result;
    *size = ntohl(size_be);
    if (*size > MOST_BYTES)
        return DOCA_ERROR_TOO_BIG;
    *bytes = malloc(*size + 1);
    if (*bytes == NULL)
        return DOCA_ERROR_NO_MEMORY;
    return receive_all(all, *bytes, *size);
}

doca_error_t meet(struct end* all)
{
    void* nothing;
    size_t size;
    doca_error_t result = send_bytes(all, NULL, 0);

    if (result == DOCA_SUCCESS) {
        result = receive_bytes(all, &nothing, &size);
        free(nothing);
    }
    if (result == DOCA_SUCCESS && size != 0)
        result = DOCA_ERROR_UNEXPECTED;
    return result;
}

bool peer_is_gone(struct end* all)
{
    char byte;

    return recv(all->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
