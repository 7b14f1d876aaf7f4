/**
 * Datagrams inside a kernel (UD of verbs): one queue pair sends messages to any number of peers, and receives from all.
 *
 * Each message names its peer, and is one packet, at most the path MTU. It may be lost, and messages of one sender may
 * overtake each other; nobody acknowledges them. The queue pair is an rdma_queue of service datagram, without
 * connection: of the functions in rdma.h, use those that do not name memory of the peer, and those below to send.
 *
 * A receive (rdma/receive.h) needs WEFTIO_DEV_DATAGRAM_HEADER_BYTES bytes more than the message: they come first, and
 * weftio_dev_rdma_message::bytes counts them. They have the IP header of the packet: that of IPv6, or 20 bytes of 0 and
 * that of IPv4. A message for which no receive is posted is lost; one that is longer than its receive fails the
 * receiver's queue pair.
 */
#pragma once

#include "weftio/device/rdma.h"

/** Bytes of a receive in front of the message. */
#define WEFTIO_DEV_DATAGRAM_HEADER_BYTES 40u

/**
 * A peer of datagrams or a multicast group, by value: an address handle of verbs, with queue pair and Q_Key. Made by
 * the host function `rdma_device::datagram_peer()`. Kernels on any device take it as an argument.
 */
struct weftio_dev_datagram_peer {
    weftio_u32 words[12]; /**< struct weftio_wqe_datagram_segment */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_datagram_peer) == sizeof(struct weftio_wqe_datagram_segment),
                     "host and device share this layout");

/**
 * Another queue pair at the same host: such as the one that sent a message, weftio_dev_rdma_message::source_queue.
 * Never blocks; any lane.
 *
 * @param queue      number, 24 bits
 * @param queue_key  Q_Key of that queue pair
 */
WEFTIO_FN struct weftio_dev_datagram_peer weftio_dev_datagram_peer_at(struct weftio_dev_datagram_peer peer,
                                                                      weftio_u32 queue, weftio_u32 queue_key)
{
    peer.words[0] = weftio_swap32(queue_key);
    peer.words[2] = weftio_swap32(WEFTIO_DATAGRAM_EXTENDED | (queue & 0xffffffu));
    return peer;
}

/**
 * Whether a message was sent from the host of `peer`: its IP header has that source address. Never blocks; any lane.
 *
 * @pre the message was received without an error, and kernels of this device can read its first piece, of 40 bytes at
 *      least
 * @return 1 or 0; 0 also if the piece is shorter than 40 bytes
 */
WEFTIO_FN weftio_u32 weftio_dev_datagram_is_from(struct weftio_dev_rdma_message message,
                                                 struct weftio_dev_datagram_peer peer)
{
    const WEFTIO_GLOBAL weftio_u8 *header = message.buffer.address;

    if (message.buffer.bytes < WEFTIO_DEV_DATAGRAM_HEADER_BYTES)
        return 0;
    if (message.is_ipv4) /* ::ffff:a.b.c.d; the source is the fourth word of the header in the last 20 bytes */
        return peer.words[8] == 0 && peer.words[9] == 0 && peer.words[10] == weftio_swap32(0xffffu) &&
               peer.words[11] == weftio_dev_gather(header, 32, 36);
    for (weftio_u32 word = 0; word < 4; ++word)
        if (peer.words[8 + word] != weftio_dev_gather(header, 8 + 4 * word, 12 + 4 * word))
            return 0;
    return 1;
}

/** Adds the peer, and the bytes of the message. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_datagram_request(struct weftio_dev_rdma_request request,
                                                                     struct weftio_dev_datagram_peer peer,
                                                                     struct weftio_dev_buf buffer, weftio_u64 offset,
                                                                     weftio_u64 bytes)
{
    for (weftio_u32 word = 0; word < 12; ++word)
        request.body[word] = peer.words[word];
    request.segments = 4;
    return weftio_dev_rdma_add_local(request, 4, buffer, offset, bytes);
}

/**
 * SEND of bytes of a buffer to a peer, or to all members of a group. It takes two positions, and one without bytes. It
 * is done when it has been sent.
 *
 * @param bytes  0 .. the smaller path MTU of the two ends; a longer message fails this queue pair
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_to_request(struct weftio_dev_datagram_peer peer,
                                                                         struct weftio_dev_buf buffer,
                                                                         weftio_u64 buffer_offset, weftio_u64 bytes)
{
    return weftio_dev_datagram_request(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND, 0), peer, buffer, buffer_offset,
                                       bytes);
}

/** As weftio_dev_rdma_send_to_request; the peer finds `immediate` in weftio_dev_rdma_message::immediate. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_to_imm_request(struct weftio_dev_datagram_peer peer,
                                                                             struct weftio_dev_buf buffer,
                                                                             weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                             weftio_u32 immediate)
{
    return weftio_dev_datagram_request(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND_IMMEDIATE, immediate), peer, buffer,
                                       buffer_offset, bytes);
}

/**
 * Sends a message of `bytes` bytes to a peer: weftio_dev_rdma_send_to_request(), enqueued. Flags, threads, ownership
 * and errors are those of weftio_dev_rdma_enqueue; WEFTIO_DEV_FULL if fewer than two positions are free.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_to(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                             struct weftio_dev_datagram_peer peer, struct weftio_dev_buf buffer,
                                             weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_to_request(peer, buffer, buffer_offset, bytes), flags);
}

/** As weftio_dev_rdma_send_to; the peer finds `immediate` in weftio_dev_rdma_message::immediate. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_to_imm(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                 struct weftio_dev_datagram_peer peer, struct weftio_dev_buf buffer,
                                                 weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 immediate,
                                                 weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_send_to_imm_request(peer, buffer, buffer_offset, bytes, immediate), flags);
}
