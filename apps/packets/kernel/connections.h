/*
 * TCP connections and the HTTP server on them: puts the state machine of TCP, the sessions of HTTP and the frames of
 * the send side together.
 */
#pragma once

#include "http/session.h"
#include "sender.h"
#include "tcp/endpoint.h"

/* A record of the table that all kernels share. */
struct connection {
    struct tcp_connection tcp; /* first, as TCP wants it */
    struct http_session http;
    weftio_u8 link[27]; /* Ethernet header of what is sent: to where the peer's last segment came from */
    weftio_u8 link_bytes;
};
WEFTIO_STATIC_ASSERT(sizeof(struct connection) == 320, "there are 65,536; docs/packets.md names the size");

/* What the host learns of a kernel, in one piece: words of 64 bits. */
struct packets_report {
    struct tcp_counters tcp;
    struct packets_counters packets;
};

/* What one kernel keeps between two launches. The host fills in what points somewhere. */
struct packets_worker {
    struct http_worker http;
    struct tcp_endpoint tcp; /* its last member begins a packets_report: */
    struct packets_counters counters;
    weftio_u32 report; /* next items of the semaphores */
    weftio_u32 ping;
};

/* Where the counters of a worker begin: those of TCP, and behind them all others. */
WEFTIO_FN WEFTIO_GLOBAL struct packets_report* report_of(WEFTIO_GLOBAL struct packets_worker* worker)
{
    return (WEFTIO_GLOBAL struct packets_report*)&worker->tcp.counters;
}

WEFTIO_FN void read_addresses(const struct frame* frame, struct tcp_addresses* addresses)
{
    const WEFTIO_GLOBAL weftio_u8* ip = frame->at + frame->network;

    if (frame->version == 4) {
        tcp_ipv4(addresses->peer, be32_get(ip + 12));
        tcp_ipv4(addresses->own, be32_get(ip + 16));
        return;
    }
    for (weftio_u32 word = 0; word < 4; ++word) {
        addresses->peer[word] = be32_get(ip + 8 + 4 * word);
        addresses->own[word] = be32_get(ip + 24 + 4 * word);
    }
}

/* IP header of `payload` bytes of TCP to the peer. */
WEFTIO_FN void write_ip(WEFTIO_GLOBAL weftio_u8* to, const struct tcp_addresses* addresses, weftio_u32 payload)
{
    if (tcp_ip_header_bytes(addresses) == 20) {
        begin_ipv4(to, PROTOCOL_TCP, payload, ANSWER_HOPS);
        be32_put(to + 12, addresses->own[3]);
        be32_put(to + 16, addresses->peer[3]);
        return;
    }
    begin_ipv6(to, PROTOCOL_TCP, payload, ANSWER_HOPS);
    for (weftio_u32 word = 0; word < 4; ++word) {
        be32_put(to + 8 + 4 * word, addresses->own[word]);
        be32_put(to + 24 + 4 * word, addresses->peer[word]);
    }
}

/* Sends one segment of a connection, with its part of the response stream. @pre has_room() */
WEFTIO_FN void send_segment(struct sender* sender, const WEFTIO_GLOBAL struct http_worker* worker,
                            WEFTIO_GLOBAL struct connection* connection, const struct tcp_segment* segment,
                            weftio_u32 position, weftio_u64 arrival_ns)
{
    struct answer frame = begin_frame(sender);
    struct tcp_addresses addresses = connection->tcp.addresses;
    WEFTIO_GLOBAL weftio_u8* ip = frame.at + connection->link_bytes;
    WEFTIO_GLOBAL weftio_u8* tcp = ip + tcp_ip_header_bytes(&addresses);
    weftio_u32 bytes = tcp_write(tcp, segment);

    bytes_copy(frame.at, connection->link, connection->link_bytes);
    if (segment->payload_bytes)
        bytes += http_copy(worker, &connection->http, position, segment->payload_bytes, tcp + bytes);
    write_ip(ip, &addresses, bytes);
    frame.bytes = (weftio_u32)(tcp - frame.at) + bytes;
    frame.flags = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM;
    end_frame(sender, &frame, arrival_ns);
}

/* Sends what a connection has to send, as far as there is room. `arrival_ns`: of the segment that it answers, or 0. */
WEFTIO_FN void send_all(struct sender* sender, WEFTIO_GLOBAL struct packets_worker* worker, weftio_u32 number,
                        weftio_u32 now, weftio_u64 arrival_ns)
{
    WEFTIO_GLOBAL struct connection* connection =
        (WEFTIO_GLOBAL struct connection*)tcp_connection_of(&worker->tcp, number);
    struct tcp_segment segment;
    weftio_u32 position, more = 1;

    while (more && has_room(sender)) {
        more = tcp_output(&worker->tcp, &connection->tcp, now, &segment, &position);
        if (more)
            send_segment(sender, &worker->http, connection, &segment, position, arrival_ns);
        arrival_ns = 0;
    }
    tcp_done(&worker->tcp, number, more, now);
}

/* What a session has done becomes TCP's to do. */
WEFTIO_FN void apply_session(WEFTIO_GLOBAL struct packets_worker* worker, WEFTIO_GLOBAL struct connection* connection,
                             const struct http_result* done, weftio_u32 now)
{
    worker->counters.requests += done->answered;
    worker->counters.refused_requests += done->refused;
    if (done->ready)
        tcp_queue(&connection->tcp, done->ready, now);
    if (done->close)
        tcp_close(&connection->tcp, now);
}

/* Bytes that the session can take: while no request buffer is free, a whole request fits all the same. */
WEFTIO_FN weftio_u32 window_of(const WEFTIO_GLOBAL struct packets_worker* worker,
                               const WEFTIO_GLOBAL struct connection* connection)
{
    return connection->http.buffer == 0 ? 65535u : http_room(&worker->http, &connection->http);
}

/* Gives the session what TCP has for it. `payload`: of the segment, where result->payload_bytes is not 0. */
WEFTIO_FN void serve_session(WEFTIO_GLOBAL struct packets_worker* worker, WEFTIO_GLOBAL struct connection* connection,
                             const WEFTIO_GLOBAL weftio_u8* payload, weftio_u64 now_ns, struct tcp_result* result)
{
    WEFTIO_GLOBAL struct http_session* session = &connection->http;
    weftio_u32 now = tcp_ticks(now_ns);
    struct http_result done;

    if (result->events & TCP_EVENT_ESTABLISHED)
        http_begin(session);
    if (result->events & TCP_EVENT_ACKNOWLEDGED) {
        weftio_u32 was_closed = window_of(worker, connection) == 0;
        http_acknowledged(&worker->http, session, tcp_acknowledged(&connection->tcp), now_ns, &done);
        apply_session(worker, connection, &done, now);
        if (was_closed && window_of(worker, connection) != 0)
            tcp_window(&worker->tcp, &connection->tcp, window_of(worker, connection));
    }
    if (result->payload_bytes) {
        http_take(&worker->http, session, payload + result->payload_offset, result->payload_bytes, now_ns, &done);
        tcp_take(&worker->tcp, &connection->tcp, done.taken, window_of(worker, connection), now, result);
        apply_session(worker, connection, &done, now);
    }
    if (result->events & TCP_EVENT_PEER_CLOSED) {
        http_end(&worker->http, session, now_ns, &done);
        apply_session(worker, connection, &done, now);
    }
    if (session->since_ns != 0 && now_ns >= http_deadline(&worker->http, session)) {
        http_expire(&worker->http, session, now_ns, &done);
        apply_session(worker, connection, &done, now);
    }
    if (result->events & TCP_EVENT_IDLE)
        http_close(&worker->http, session, &done); /* TCP has closed already */
    if (result->events & TCP_EVENT_CLOSED)
        http_drop(&worker->http, session);
    tcp_wake(&connection->tcp, session->since_ns != 0 ? tcp_ticks(http_deadline(&worker->http, session)) + 1 : 0);
}

/* Sends a segment of no connection to where `frame` came from. */
WEFTIO_FN void send_answer(struct sender* sender, const struct frame* frame,
                           const WEFTIO_GLOBAL struct packets_settings* settings, const struct tcp_segment* segment,
                           weftio_u64 arrival_ns)
{
    struct answer answer = begin_frame(sender);
    weftio_u32 at = answer_ethernet(answer.at, frame, settings);
    weftio_u32 network = frame->version == 4 ? 20 : 40;
    weftio_u32 bytes = tcp_write(answer.at + at + network, segment);

    answer_ip(answer.at + at, frame, destination_of(frame), bytes, ANSWER_HOPS);
    answer.bytes = at + network + bytes;
    answer.flags = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM;
    end_frame(sender, &answer, arrival_ns);
}

/* A segment has come. Returns its verdict. @pre has_room() */
WEFTIO_FN weftio_u32 take_segment(struct sender* sender, WEFTIO_GLOBAL struct packets_worker* worker,
                                  const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                  weftio_u64 now_ns, weftio_u64 arrival_ns)
{
    const WEFTIO_GLOBAL weftio_u8* header = frame->at + frame->transport;
    struct tcp_addresses addresses;
    struct tcp_segment segment;
    struct tcp_result result;

    if (!(frame->flags & WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD))
        return VERDICT_bad_checksum;
    if (!is_our_address(destination_of(frame), frame->version, settings))
        return VERDICT_other_address;
    if (!is_a_host(frame->at + frame->network + (frame->version == 4 ? 12 : 8), frame->version))
        return VERDICT_source;
    weftio_u32 reason = tcp_parse(header, transport_bytes(frame), &segment);
    if (reason != TCP_PARSED)
        return reason == TCP_CUT_HEADER ? VERDICT_cut : VERDICT_bad_header;
    read_addresses(frame, &addresses);
    tcp_receive(&worker->tcp, &addresses, &segment, now_ns,
                settings->http_port != 0 && segment.destination_port == settings->http_port, &result);
    if (result.has_answer)
        send_answer(sender, frame, settings, &result.answer, arrival_ns);
    if (result.connection == TCP_NONE)
        return VERDICT_tcp;
    WEFTIO_GLOBAL struct connection* connection =
        (WEFTIO_GLOBAL struct connection*)tcp_connection_of(&worker->tcp, result.connection);
    if (connection->tcp.state == TCP_STATE_SYN_RECEIVED || result.events)
        connection->link_bytes = (weftio_u8)answer_ethernet(connection->link, frame, settings);
    serve_session(worker, connection, header + segment.header_bytes, now_ns, &result);
    send_all(sender, worker, result.connection, tcp_ticks(now_ns), arrival_ns);
    return VERDICT_tcp;
}

/* Serves connections whose time has come, and those that found no room to send; some at a time. */
WEFTIO_FN void let_time_pass(struct sender* sender, WEFTIO_GLOBAL struct packets_worker* worker, weftio_u64 now_ns)
{
    struct tcp_result result;

    for (weftio_u32 each = 0; each < 32 && has_room(sender) && tcp_due(&worker->tcp, now_ns, &result); ++each) {
        WEFTIO_GLOBAL struct connection* connection =
            (WEFTIO_GLOBAL struct connection*)tcp_connection_of(&worker->tcp, result.connection);
        serve_session(worker, connection, connection->link, now_ns, &result);
        send_all(sender, worker, result.connection, tcp_ticks(now_ns), 0);
    }
    worker->counters.connections = worker->tcp.connections;
}
