/*
 * A server of HTTP with the calls for sockets that librspreload has. For tests/scripts/run_connections.sh.
 *
 *   hello PORT      answers one request with "hello"
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char** words)
{
    static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[count - 1]))};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 1) != 0) {
        perror("hello");
        return 1;
    }
    const int client = accept(listener, NULL, NULL);
    char request[4096] = "";
    size_t got = 0;
    while (client >= 0 && strstr(request, "\r\n\r\n") == NULL) {
        const ssize_t more = recv(client, request + got, sizeof request - 1 - got, 0);
        if (more <= 0)
            return 1;
        got += (size_t)more;
    }
    const int failed = send(client, answer, sizeof answer - 1, 0) != (ssize_t)sizeof answer - 1;
    shutdown(client, SHUT_RDWR);
    close(client);
    close(listener);
    return failed;
}
