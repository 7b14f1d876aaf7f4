// One small kernel for each promise of platform/cuda.h and for each step of a ring: tests/scripts/ptx.sh reads the PTX.
#include "weftio/device/eth_txq.h"

extern "C" {

__global__ void load_relaxed(const weftio_u32* word, weftio_u32* to)
{
    *to = weftio_load_relaxed_u32(word);
}
/* The payload may be read only once the word has been. */
__global__ void load_acquire(const weftio_u32* word, const weftio_u32* payload, weftio_u32* to)
{
    *to = weftio_load_acquire_u32(word) + *payload;
}
__global__ void load_acquire_sys(const weftio_u32* word, const weftio_u32* payload, weftio_u32* to)
{
    *to = weftio_load_acquire_sys_u32(word) + *payload;
}
__global__ void load_acquire_sys_wide(const weftio_u64* word, const weftio_u32* payload, weftio_u64* to)
{
    *to = weftio_load_acquire_sys_u64(word) + *payload;
}
/* The payload is written before the word. */
__global__ void store_relaxed(weftio_u32* word)
{
    weftio_store_relaxed_u32(word, 1);
}
__global__ void store_release(weftio_u32* word, weftio_u32* payload)
{
    *payload = 7;
    weftio_store_release_u32(word, 1);
}
__global__ void store_release_sys(weftio_u32* word, weftio_u32* payload)
{
    *payload = 7;
    weftio_store_release_sys_u32(word, 1);
}
__global__ void store_release_sys_wide(weftio_u64* word, weftio_u32* payload)
{
    *payload = 7;
    weftio_store_release_sys_u64(word, 1);
}
__global__ void load_x4(const weftio_u32* words, weftio_u32* to)
{
    weftio_u32 a, b, c, d;

    weftio_load_x4(words, &a, &b, &c, &d);
    *to = a ^ b ^ c ^ d;
}
__global__ void store_x4(weftio_u32* words)
{
    weftio_store_x4(words, 1, 2, 3, 4);
}
__global__ void doorbell(weftio_u64* word, weftio_u32* payload)
{
    *payload = 7;
    weftio_store_doorbell_u64(word, 1);
}
__global__ void fetch_add(weftio_u32* word, weftio_u32* payload)
{
    *payload = 7;
    payload[1] = weftio_fetch_add_u32(word, 1);
}
__global__ void compare_exchange(weftio_u32* word, weftio_u32* payload)
{
    *payload = 7;
    payload[1] = weftio_compare_exchange_acquire_u32(word, 0, 1);
}
__global__ void fetch_add_relaxed(weftio_u32* word, weftio_u32* payload)
{
    *payload = weftio_fetch_add_relaxed_u32(word, 1);
}
__global__ void fetch_add_acquire(weftio_u32* word, const weftio_u32* payload, weftio_u32* to)
{
    *to = weftio_fetch_add_acquire_u32(word, 1) + *payload;
}
/* Loads that may leave a loop. */
__global__ void load_constant(const weftio_u32* words, weftio_u32* to, weftio_u32 count)
{
    for (weftio_u32 at = 0; at < count; ++at)
        to[at] = weftio_load_constant_u32(words);
}
/* Both words are asked for before one fence, and what they published is published behind it. */
__global__ void publish_together(const weftio_u32* words, weftio_u32* payload, weftio_u32* to)
{
    *payload = 7;
    weftio_store_fenced_sys_u32(to, weftio_load_fenced_u32(words) + weftio_load_fenced_u32(words + 1));
}

/* Rule 2 of the contract: entry, record, doorbell. */
__global__ void send(weftio_dev_eth_txq* txq, weftio_dev_buf_arr* frames, weftio_u32* payload)
{
    *payload = 7;
    weftio_dev_write_send(weftio_dev_send_parts_of(&txq->queue.ring), 0, weftio_dev_buf_get(frames, 0), 64,
                          WEFTIO_DEV_SEND_NONE);
    weftio_dev_send_publish(&txq->queue.ring, 1);
    weftio_dev_send_doorbell(&txq->queue.ring);
}
/*
 * Rule 3: the publication word, then the rest of the completion and the packet; and they are read before the slot goes
 * back.
 */
__global__ void receive(weftio_dev_eth_rxq* rxq, weftio_u32* to)
{
    weftio_dev_packet packet;

    if (weftio_dev_eth_rxq_packet(rxq, 0, &packet) != WEFTIO_DEV_OK)
        return;
    *to = packet.bytes + *(const weftio_u32*)packet.address;
    weftio_dev_post_receive(rxq->dbrec, 1);
}
}
