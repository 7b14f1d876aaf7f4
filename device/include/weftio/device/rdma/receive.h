/**
 * The receive ring of a queue pair inside a kernel: where messages of the peer go, and what has arrived.
 *
 * Life of a receive: *post* says where a message may go; *commit* lets the NIC use it; a SEND, or a WRITE with
 * immediate, of the peer takes the oldest one and completes it; *wait* or *poll* hands it out; *message* tells what it
 * is. The receive at position k is message k. Strong and weak posting are as in rdma.h.
 *
 * Receives may be posted before the queue pair is connected. They go in the order in which they were posted.
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/queue/completion.h"
#include "weftio/device/queue/send.h"

/** Made by the host class `rdma_queue`. Kernels use it through the functions below only. */
struct weftio_dev_rdma_recv {
    /** Entries are enqueued and committed as in a send queue; its `completion` is what `taken` writes. */
    struct weftio_dev_send_queue queue;
    struct weftio_dev_completion_ring completions;
    const WEFTIO_GLOBAL struct weftio_cqe
        *connection;                 /**< the collapsed completion of the send side: it tells errors */
    WEFTIO_GLOBAL weftio_u32 *taken; /**< names the last message that was handed out */
    weftio_u32 segments;             /**< of an entry */
    weftio_u32 received;             /**< next message to hand out */
    weftio_u32 reserved[6];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_rdma_recv) == (WEFTIO_DEV_ABI_RDMA_RECV & 0xffffu),
                     "host and device share this layout");

/** What took a receive. */
enum weftio_dev_rdma_kind {
    WEFTIO_DEV_RDMA_SEND = 0,
    WEFTIO_DEV_RDMA_SEND_IMM = 1,
    WEFTIO_DEV_RDMA_WRITE_IMM = 2, /**< its bytes lie where the WRITE said, not in the receive's buffer */
    WEFTIO_DEV_RDMA_SEND_INVAL = 3
};

/** One message, by value. */
struct weftio_dev_rdma_message {
    weftio_u64 timestamp_ns; /**< UTC, when it was complete; 0 after an error */
    weftio_u32 bytes;
    weftio_u32 immediate; /**< of SEND_IMM and WRITE_IMM; of SEND_INVAL the key */
    weftio_u32 kind;      /**< enum weftio_dev_rdma_kind */
    weftio_u32 solicited; /**< 1: the peer asked for it with WEFTIO_DEV_RDMA_SOLICITED */
    weftio_u32 syndrome;  /**< enum weftio_syndrome: why the receive failed, else 0 */
    weftio_u32 reason;    /**< the NIC's own number of the reason, for messages */
};

/** Whether the handle is that of a receive ring: as weftio_dev_is_handle. */
WEFTIO_FN weftio_u32 weftio_dev_is_rdma_recv(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    return weftio_dev_is_handle(recv->queue.abi, WEFTIO_DEV_ABI_RDMA_RECV);
}

/** Whether `bytes` bytes from `offset` on are such that one receive takes them. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_recv_fits(struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    return offset <= buffer.bytes && bytes <= buffer.bytes - offset && bytes <= 0x80000000u;
}

/** Writes piece `piece` of an entry, and ends the list behind it. No bytes end the list there. */
WEFTIO_FN void weftio_dev_rdma_write_piece(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 index,
                                           weftio_u32 piece, struct weftio_dev_buf buffer, weftio_u64 offset,
                                           weftio_u64 bytes)
{
    weftio_u64 segment = (weftio_u64)(index & recv->queue.ring.mask) * recv->segments + piece;
    WEFTIO_GLOBAL weftio_u32 *at = recv->queue.ring.segments + segment * 4;
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address + offset);

    if (bytes)
        weftio_store_x4(at, weftio_swap32((weftio_u32)bytes & 0x7fffffffu), buffer.lkey_be, (weftio_u32)address_be,
                        (weftio_u32)(address_be >> 32));
    if (bytes && piece + 1 < recv->segments)
        at += 4;
    else if (bytes)
        return;
    weftio_store_x4(at, 0, weftio_swap32(WEFTIO_LKEY_INVALID), 0, 0);
}

/**
 * Posts a receive at the next free position, and tells which that is: `bytes` bytes of the buffer, from `offset` on.
 * Never blocks. Any lane of any block, several at once. Leave the bytes alone until the message has been handed out.
 *
 * @param bytes          0 .. 2^31; 0: for a WRITE with immediate, or a message without bytes
 * @param[out] position  free-running index, which is that of the message; unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL every position is posted and no message of it was handed out (nothing is
 *         posted); WEFTIO_DEV_INVALID_ARGUMENT `bytes` reaches beyond the buffer; with WEFTIO_DEV_CHECKS (handle.h)
 *         also: `recv` is no receive ring, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_post_position(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                        struct weftio_dev_buf buffer, weftio_u64 offset,
                                                        weftio_u64 bytes, weftio_u32 *position)
{
    weftio_u32 index;

    if (!weftio_dev_is_rdma_recv(recv) || !weftio_dev_rdma_recv_fits(buffer, offset, bytes))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&recv->queue.ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_rdma_write_piece(recv, index, 0, buffer, offset, bytes);
    weftio_dev_send_fill(&recv->queue.ring, index, 1);
    *position = index;
    return WEFTIO_DEV_OK;
}

/** As weftio_dev_rdma_recv_post_position, for who need not know where. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_post(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                               struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    weftio_u32 position;

    return weftio_dev_rdma_recv_post_position(recv, buffer, offset, bytes, &position);
}

/** As weftio_dev_send_queue_get_info: where the next receive goes, and the mask of positions, for weak mode. */
WEFTIO_FN void weftio_dev_rdma_recv_get_info(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                             weftio_u32 *position, weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&recv->queue, position, mask);
}

/**
 * Posts a receive at `position`. Never blocks; lanes of one block, each its own positions, without gaps. Whether
 * message `position` - depth has been handed out is the caller's business.
 *
 * @param position  free-running, from get_info on
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_recv_post_position, or `position` has been
 *         committed, or is not within the ring's depth of the next one
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_post_weak(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                    struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes,
                                                    weftio_u32 position)
{
    if (!weftio_dev_is_rdma_recv(recv) || !weftio_dev_rdma_recv_fits(buffer, offset, bytes) ||
        !weftio_dev_weak_fits(&recv->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_rdma_write_piece(recv, position, 0, buffer, offset, bytes);
    return WEFTIO_DEV_OK;
}

/**
 * Says where a message goes on, behind piece `piece` - 1 of the weak receive at `position`. As
 * weftio_dev_rdma_recv_post_weak otherwise.
 *
 * @param piece  1 .. rdma_queue_options::receive_segments - 1, in order
 * @param bytes  1 .. 2^31
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_add_piece_weak(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                         struct weftio_dev_buf buffer, weftio_u64 offset,
                                                         weftio_u64 bytes, weftio_u32 position, weftio_u32 piece)
{
    if (!weftio_dev_is_rdma_recv(recv) || !weftio_dev_rdma_recv_fits(buffer, offset, bytes) ||
        !weftio_dev_weak_fits(&recv->queue.ring, position) || !bytes || !piece || piece >= recv->segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_rdma_write_piece(recv, position, piece, buffer, offset, bytes);
    return WEFTIO_DEV_OK;
}

/**
 * WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK, as weftio_dev_send_queue_status: a queue pair fails on
 * both sides. Never blocks; any lane.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_status(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    if (!weftio_dev_is_rdma_recv(recv))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    /* Acquire, pairs with the NIC's release: the receives that it has flushed before are seen as such. */
    if (weftio_cqe_opcode(weftio_load_acquire_sys_u32(&recv->connection->publication)) ==
        WEFTIO_CQE_OPCODE_REQUESTER_ERROR)
        return WEFTIO_DEV_QUEUE_ERROR;
    return weftio_dev_aborted(recv->queue.control) ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
}

/** What a commit says, of a queue pair that may have failed. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_committed(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                    weftio_s32 status)
{
    return status == WEFTIO_DEV_OK ? weftio_dev_rdma_recv_status(recv) : status;
}

/**
 * Lets the NIC use the strong receives that are posted without a gap; it needs no push. As
 * weftio_dev_send_queue_commit_strong. What is posted to a queue pair that has failed waits for reset().
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_commit(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    if (!weftio_dev_is_rdma_recv(recv))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_rdma_recv_committed(recv, weftio_dev_send_queue_commit_strong(&recv->queue));
}

/** The same for the next `count` weak ones, as weftio_dev_send_queue_commit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_commit_weak(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 count)
{
    if (!weftio_dev_is_rdma_recv(recv))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_rdma_recv_committed(recv, weftio_dev_send_queue_commit_weak(&recv->queue, count));
}

/** Whether message `index`, which has arrived, is an error. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_recv_is_error(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                   weftio_u32 index)
{
    weftio_u32 publication = weftio_load_relaxed_u32(&weftio_dev_completion_at(&recv->completions, index)->publication);

    return weftio_cqe_opcode(publication) == WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
}

/** Hands out messages [first, first + count), and makes of `status` what a wait for `wanted` of them says. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_hand_out(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 first,
                                                   weftio_u32 count, weftio_u32 wanted, weftio_s32 status)
{
    if (count && weftio_dev_rdma_recv_is_error(recv, first + count - 1))
        status = WEFTIO_DEV_QUEUE_ERROR;
    else if (count == wanted && status != WEFTIO_DEV_ABORTED)
        status = WEFTIO_DEV_OK;
    if (count) {
        weftio_store_relaxed_u32(&recv->received, first + count);
        /* Release: who posts in the place of a message knows that it has been read. */
        weftio_store_release_sys_u32(recv->taken,
                                     weftio_cqe_publication(first + count - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    }
    weftio_dev_beat(recv->queue.control, &recv->queue.beats, WEFTIO_DEV_FUNCTION_RECEIVE, first + count, status);
    return status;
}

/**
 * Waits until `wanted` messages have arrived, and hands them out. Blocks until then, bounded by `timeout_ns` (0: by the
 * abort flag only). One lane; other lanes may ask for the messages afterwards.
 *
 * Messages `first` .. `first + count - 1` are handed out whatever the status is. Their positions may be posted again:
 * ask for a message before.
 *
 * @param wanted      1 .. depth of the ring
 * @param[out] count  messages handed out: `wanted` when OK, else perhaps fewer
 * @param[out] first  index of the first, which is the position of its receive
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR the queue pair has failed: the
 *         last messages may be receives that failed or were flushed; WEFTIO_DEV_INVALID_ARGUMENT `wanted` is 0 or more
 *         than the ring has, or as weftio_dev_rdma_recv_post_position
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_wait(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 wanted,
                                               weftio_u64 timeout_ns, weftio_u32 *count, weftio_u32 *first)
{
    weftio_u64 start_ns = 0;

    *count = 0;
    if (!weftio_dev_is_rdma_recv(recv) || wanted - 1 > recv->completions.mask)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_u32 start = weftio_load_relaxed_u32(&recv->received), found = 0;
    *first = start;
    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_s32 status = weftio_dev_rdma_recv_status(recv);
        found += weftio_dev_completion_count(&recv->completions, start + found, wanted - found, 0, 1);
        *count = found;
        if (found == wanted || status != WEFTIO_DEV_OK)
            return weftio_dev_rdma_recv_hand_out(recv, start, found, wanted, status);
        status = weftio_dev_send_queue_wait_on(&recv->queue, attempt, timeout_ns, &start_ns, start + found,
                                               WEFTIO_DEV_NOT_FOUND);
        if (status != WEFTIO_DEV_OK)
            return weftio_dev_rdma_recv_hand_out(recv, start, found, wanted, status);
    }
}

/**
 * Hands out what has arrived, at most `most` messages; in inline mode the NIC has its turn first. Never blocks. As
 * weftio_dev_rdma_recv_wait otherwise, but WEFTIO_DEV_OK also with none.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_poll(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 most,
                                               weftio_u32 *count, weftio_u32 *first)
{
    *count = 0;
    if (!weftio_dev_is_rdma_recv(recv) || most - 1 > recv->completions.mask)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_nic_turn(recv->queue.turn, recv->queue.turn_context);
    weftio_s32 status = weftio_dev_rdma_recv_status(recv);
    *first = weftio_load_relaxed_u32(&recv->received);
    *count = weftio_dev_completion_count(&recv->completions, *first, most, 0, 1);
    return weftio_dev_rdma_recv_hand_out(recv, *first, *count, most, status);
}

/** What a completion of this opcode is: enum weftio_dev_rdma_kind. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_kind_of(weftio_u32 opcode)
{
    switch (opcode) {
        case WEFTIO_CQE_OPCODE_RESPONDER_WRITE: return WEFTIO_DEV_RDMA_WRITE_IMM;
        case WEFTIO_CQE_OPCODE_RESPONDER_SEND_IMMEDIATE: return WEFTIO_DEV_RDMA_SEND_IMM;
        case WEFTIO_CQE_OPCODE_RESPONDER_SEND_INVALIDATE: return WEFTIO_DEV_RDMA_SEND_INVAL;
        default: return WEFTIO_DEV_RDMA_SEND;
    }
}

/**
 * Everything about message `index`. Never blocks; any lane.
 *
 * @pre `index` was handed out, and nothing was committed at position `index` + depth yet
 * @param[out] message  unchanged unless OK or QUEUE_ERROR
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the receive failed or was flushed, and `syndrome` says why;
 *         WEFTIO_DEV_NOT_FOUND it was not handed out, or its completion has been overwritten since;
 *         WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_recv_wait
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_message(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                  weftio_u32 index, struct weftio_dev_rdma_message *message)
{
    if (!weftio_dev_is_rdma_recv(recv))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const WEFTIO_GLOBAL struct weftio_cqe *cqe = weftio_dev_completion_at(&recv->completions, index);
    weftio_u32 age = weftio_load_relaxed_u32(&recv->received) - 1 - index;
    if (age > recv->completions.mask || !weftio_dev_completion_ready(&recv->completions, index))
        return WEFTIO_DEV_NOT_FOUND;
    weftio_u32 publication = weftio_load_relaxed_u32(&cqe->publication);
    weftio_u32 failed = weftio_cqe_opcode(publication) == WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
    weftio_u64 time = weftio_swap64(cqe->timestamp_be);
    message->timestamp_ns = failed ? 0 : weftio_real_time_to_ns(time);
    message->bytes = weftio_swap32(cqe->byte_count_be);
    message->immediate = weftio_swap32(cqe->immediate_be);
    message->kind = weftio_dev_rdma_kind_of(weftio_cqe_opcode(publication));
    message->solicited = publication >> 24 & WEFTIO_CQE_SOLICITED ? 1 : 0;
    message->syndrome = failed ? (weftio_u32)time & 0xffu : 0;
    message->reason = failed ? (weftio_u32)(time >> 8) & 0xffu : 0;
    return failed ? WEFTIO_DEV_QUEUE_ERROR : WEFTIO_DEV_OK;
}
