/*
 * The kernel of weftio-packets: one source for C++, OpenCL C and CUDA. Each of several runs this with a receive queue
 * and a send queue of its own, by one lane. The port gives all packets of a connection to the same one.
 */
#pragma once

#include "connections.h"
#include "udp.h"
#include "weftio/device/semaphore.h"

#define PACKETS_BURST 64u /* most frames between two looks at timers */

/*
 * If the mean distance between frames is below this, a kernel that has received none soon sleeps instead of polling:
 * its next look finds several frames, which take less time together. At lower rates the sleep would only delay one.
 */
#define PACKETS_CLOSE_NS 40000u
#define PACKETS_LOOKS 16u   /* without a frame, before it sleeps then */
#define PACKETS_SLEEP 4096u /* attempts from which on weftio_relax() sleeps */

/* Custom info of the semaphore that tells of pings. */
struct ping_info {
    weftio_u64 arrival_ns; /* UTC */
    weftio_u8 source[16];
    weftio_u32 version;
    weftio_u32 bytes; /* of the message */
    weftio_u32 identifier;
    weftio_u32 sequence;
};

/* What one kernel works with. */
struct server {
    WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq;
    const WEFTIO_GLOBAL struct packets_settings* settings;
    WEFTIO_GLOBAL struct packets_worker* worker;
    const WEFTIO_GLOBAL struct weftio_dev_semaphore* reports;
    const WEFTIO_GLOBAL struct weftio_dev_semaphore* pings; /* 0: nobody asks */
    struct sender sender;
    weftio_u64 next_report_ns;
    weftio_u64 received_ns; /* when the latest burst came */
    weftio_u64 spacing_ns;  /* from one frame to the next, a moving average */
    weftio_u32 report;      /* next item of `reports` */
    weftio_u32 ping;        /* next item of `pings` */
};

/* Tells the host of a ping, if it has room to listen. */
WEFTIO_FN void report_ping(struct server* server, const struct frame* frame, weftio_u64 arrival_ns)
{
    const WEFTIO_GLOBAL weftio_u8* message = frame->at + frame->transport;

    if (weftio_dev_semaphore_get_status(server->pings, server->ping) != WEFTIO_DEV_SEMAPHORE_FREE)
        return;
    WEFTIO_GLOBAL struct ping_info* info =
        (WEFTIO_GLOBAL struct ping_info*)weftio_dev_semaphore_get_custom_info_addr(server->pings, server->ping);
    info->arrival_ns = arrival_ns;
    info->version = frame->version;
    bytes_copy(info->source, frame->at + frame->network + (frame->version == 4 ? 12 : 8), frame->version == 4 ? 4 : 16);
    info->bytes = transport_bytes(frame);
    info->identifier = be16_get(message + 4);
    info->sequence = be16_get(message + 6);
    weftio_dev_semaphore_set_status(server->pings, server->ping, WEFTIO_DEV_SEMAPHORE_READY);
    server->ping = weftio_dev_semaphore_next(server->pings, server->ping);
}

WEFTIO_FN void copy_report(WEFTIO_GLOBAL void* to, WEFTIO_GLOBAL struct packets_worker* worker)
{
    bytes_copy((WEFTIO_GLOBAL weftio_u8*)to, (const WEFTIO_GLOBAL weftio_u8*)report_of(worker),
               sizeof(struct packets_report));
}

/* Hands a copy of the counters to the host, if it has taken the one before. */
WEFTIO_FN void report_counters(struct server* server)
{
    if (weftio_dev_semaphore_get_status(server->reports, server->report) != WEFTIO_DEV_SEMAPHORE_FREE)
        return;
    copy_report(weftio_dev_semaphore_get_custom_info_addr(server->reports, server->report), server->worker);
    weftio_dev_semaphore_set_status(server->reports, server->report, WEFTIO_DEV_SEMAPHORE_READY);
    server->report = weftio_dev_semaphore_next(server->reports, server->report);
}

/* Composes the answer to a frame without connection. Returns its verdict. */
WEFTIO_FN weftio_u32 answer_frame(struct server* server, const struct frame* frame, struct answer* answer)
{
    if (frame->version == 0)
        return answer_arp(frame, server->settings, answer);
    if (frame->protocol == PROTOCOL_UDP)
        return answer_udp(frame, server->settings, &server->worker->counters, answer);
    if (frame->version == 4 && frame->protocol == PROTOCOL_ICMP)
        return answer_icmp(frame, server->settings, answer);
    if (frame->version == 6 && frame->protocol == PROTOCOL_ICMPV6)
        return answer_icmpv6(frame, server->settings, answer);
    return VERDICT_other_protocol;
}

/* Answers one received packet. Returns its verdict. */
WEFTIO_FN weftio_u32 take_packet(struct server* server, const struct weftio_dev_packet* packet, weftio_u64 now_ns)
{
    struct frame frame;

    weftio_u32 verdict = read_frame(packet, server->settings, &frame);
    if (verdict != VERDICT_NONE)
        return verdict;
    if (!has_room(&server->sender))
        return VERDICT_no_room;
    if (frame.protocol == PROTOCOL_TCP)
        return take_segment(&server->sender, server->worker, &frame, server->settings, now_ns, packet->timestamp_ns);
    struct answer answer = begin_frame(&server->sender);
    verdict = answer_frame(server, &frame, &answer);
    end_frame(&server->sender, &answer, packet->timestamp_ns);
    if (server->pings && (verdict == VERDICT_ping || verdict == VERDICT_ping6))
        report_ping(server, &frame, packet->timestamp_ns);
    return verdict;
}

WEFTIO_FN void take_burst(struct server* server, weftio_u32 first, weftio_u32 count, weftio_u64 now_ns)
{
    WEFTIO_GLOBAL struct packets_counters* counters = &server->worker->counters;
    struct weftio_dev_packet packet;

    for (weftio_u32 each = 0; each < count; ++each) {
        if (weftio_dev_eth_rxq_packet(server->rxq, first + each, &packet) != WEFTIO_DEV_OK)
            continue; /* impossible: it is ours until we release it */
        ++counters->frames;
        counters->bytes += packet.bytes;
        ++counters->verdicts[take_packet(server, &packet, now_ns)];
    }
    if (count)
        weftio_dev_eth_rxq_release(server->rxq, first, count);
}

/* Notes that a burst of `count` frames has come. */
WEFTIO_FN void note_spacing(struct server* server, weftio_u32 count, weftio_u64 now_ns)
{
    weftio_u64 spacing_ns = (now_ns - server->received_ns) / count;

    server->spacing_ns = server->spacing_ns - server->spacing_ns / 8 + spacing_ns / 8;
    server->received_ns = now_ns;
}

/* One step of a wait for frames: nothing has come `attempt` times. */
WEFTIO_FN void wait_for_frames(const struct server* server, weftio_u32 attempt)
{
    if (server->settings->busy)
        weftio_relax(0);
    else if (server->spacing_ns < PACKETS_CLOSE_NS && attempt >= PACKETS_LOOKS)
        weftio_relax(PACKETS_SLEEP);
    else
        weftio_relax(attempt);
}

/* Receives, answers and lets time pass until the host wants an end or the send queue fails. */
WEFTIO_FN void serve_until_end(struct server* server)
{
    weftio_s32 status = WEFTIO_DEV_OK;

    for (weftio_u32 attempt = 0; status == WEFTIO_DEV_OK; ++attempt) {
        weftio_u32 count, first;
        status = weftio_dev_eth_rxq_receive_thread(server->rxq, PACKETS_BURST, 1, &count, &first);
        weftio_u64 now_ns = weftio_dev_clock_ns(server->rxq->clock);
        take_burst(server, first, count, now_ns);
        let_time_pass(&server->sender, server->worker, now_ns);
        flush_frames(&server->sender);
        measure_answer(&server->sender);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_eth_txq_status(server->sender.txq);
        if (now_ns >= server->next_report_ns) {
            report_counters(server);
            server->next_report_ns = now_ns + server->settings->statistics_ns;
        }
        if (count) {
            note_spacing(server, count, now_ns);
            attempt = 0;
        } else {
            wait_for_frames(server, attempt);
        }
    }
}

/* `last`: gets the counters as they are at the end. */
WEFTIO_KERNEL void serve(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                         WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                         const WEFTIO_GLOBAL struct packets_settings* settings,
                         WEFTIO_GLOBAL struct packets_worker* worker,
                         WEFTIO_GLOBAL struct weftio_dev_semaphore* reports,
                         WEFTIO_GLOBAL struct weftio_dev_semaphore* pings, WEFTIO_GLOBAL struct packets_report* last)
{
    struct server server;

    server.rxq = rxq;
    server.settings = settings;
    server.worker = worker;
    server.reports = reports;
    server.pings = settings->ping_report ? pings : 0;
    server.sender = start_sending(txq, frames, &worker->counters);
    server.next_report_ns = server.received_ns = 0;
    server.spacing_ns = (weftio_u64)1 << 56;
    server.report = worker->report;
    server.ping = worker->ping;
    serve_until_end(&server);
    worker->report = server.report;
    worker->ping = server.ping;
    copy_report(last, worker);
}
