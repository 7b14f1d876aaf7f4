/* A kernel that runs a TCP endpoint on recorded segments, so that devices can be compared. */
#pragma once

#include "kernel/tcp/endpoint.h"

enum { TCP_REPLAY_RECORDS = 64, TCP_REPLAY_STEPS = 16384, TCP_REPLAY_OUTPUTS = 512 };

/* A received segment, of which only the header is used; only a time if `bytes` is 0. */
struct tcp_replay_step {
    weftio_u64 now_ns;
    struct tcp_addresses addresses;
    weftio_u32 bytes;
    weftio_u8 header[TCP_HEADER_MOST_BYTES];
};
struct tcp_replay_output {
    struct tcp_addresses addresses;
    weftio_u32 stream_offset, payload_bytes, header_bytes;
    weftio_u8 header[TCP_HEADER_MOST_BYTES];
};
struct tcp_replay_record {
    struct tcp_connection tcp;
    weftio_u32 taken, reserved;
};
struct tcp_replay_world {
    struct tcp_settings settings;
    struct tcp_pool pool;
    struct tcp_endpoint endpoint;
    struct tcp_replay_record records[TCP_REPLAY_RECORDS];
    weftio_u32 buckets[TCP_REPLAY_RECORDS], lists[TCP_LISTS];
    weftio_u32 steps, output_count; /* output_count: of the last step */
    weftio_u64 digest;              /* of all outputs of all steps */
    struct tcp_replay_output outputs[TCP_REPLAY_OUTPUTS];
    struct tcp_replay_step step[TCP_REPLAY_STEPS];
};

WEFTIO_FN void tcp_replay_prepare(WEFTIO_GLOBAL struct tcp_replay_world* world)
{
    world->endpoint.records = (WEFTIO_GLOBAL weftio_u8*)world->records;
    world->endpoint.record_bytes = sizeof(world->records[0]);
    world->endpoint.pool = &world->pool;
    world->endpoint.settings = &world->settings;
    world->endpoint.buckets = world->buckets;
    world->endpoint.bucket_mask = TCP_REPLAY_RECORDS - 1;
    world->endpoint.lists = world->lists;
    world->pool.limit = TCP_REPLAY_RECORDS;
}

/* FNV-1a of all sent bytes. */
WEFTIO_FN void tcp_replay_send(WEFTIO_GLOBAL struct tcp_replay_world* world, const struct tcp_addresses* addresses,
                               const struct tcp_segment* segment, weftio_u32 stream_offset)
{
    WEFTIO_GLOBAL struct tcp_replay_output* output = &world->outputs[world->output_count++ % TCP_REPLAY_OUTPUTS];

    output->addresses = *addresses;
    output->stream_offset = stream_offset;
    output->payload_bytes = segment->payload_bytes;
    output->header_bytes = tcp_write(output->header, segment);
    for (weftio_u32 i = 0; i < output->header_bytes; ++i)
        world->digest = (world->digest ^ output->header[i]) * 1099511628211u;
    world->digest = (world->digest ^ stream_offset ^ (weftio_u64)segment->payload_bytes << 32) * 1099511628211u;
}

/* An application that answers each byte with 20 bytes, and closes after the peer. */
WEFTIO_FN void tcp_replay_serve(WEFTIO_GLOBAL struct tcp_replay_world* world, struct tcp_result* result, weftio_u32 now)
{
    WEFTIO_GLOBAL struct tcp_replay_record* record = &world->records[result->connection - 1];
    struct tcp_addresses addresses = record->tcp.addresses;
    struct tcp_segment segment;
    weftio_u32 offset, more = 0;

    if (result->payload_bytes) {
        tcp_take(&world->endpoint, &record->tcp, result->payload_bytes, world->settings.receive_window, now, result);
        tcp_queue(&record->tcp, result->payload_bytes * 20, now);
    }
    if (result->events & TCP_EVENT_PEER_CLOSED)
        tcp_close(&record->tcp, now);
    for (weftio_u32 sent = 0; !more && tcp_output(&world->endpoint, &record->tcp, now, &segment, &offset); ++sent) {
        tcp_replay_send(world, &addresses, &segment, offset);
        more = sent == 15;
    }
    tcp_done(&world->endpoint, result->connection, more, now);
}

WEFTIO_FN void tcp_replay_one(WEFTIO_GLOBAL struct tcp_replay_world* world, weftio_u32 index)
{
    WEFTIO_GLOBAL struct tcp_replay_step* step = &world->step[index];
    struct tcp_addresses addresses = step->addresses;
    struct tcp_segment segment;
    struct tcp_result result;

    world->output_count = 0;
    if (step->bytes && tcp_parse(step->header, step->bytes, &segment) == TCP_PARSED) {
        tcp_receive(&world->endpoint, &addresses, &segment, step->now_ns, 1, &result);
        if (result.has_answer)
            tcp_replay_send(world, &addresses, &result.answer, 0);
        if (result.connection != TCP_NONE)
            tcp_replay_serve(world, &result, tcp_ticks(step->now_ns));
    }
    for (weftio_u32 i = 0; i < 16 && tcp_due(&world->endpoint, step->now_ns, &result); ++i)
        tcp_replay_serve(world, &result, tcp_ticks(step->now_ns));
}

WEFTIO_KERNEL void tcp_replay(WEFTIO_GLOBAL struct tcp_replay_world* world)
{
    tcp_replay_prepare(world);
    for (weftio_u32 index = 0; index < world->steps; ++index)
        tcp_replay_one(world, index);
}
