/**
 * The receive ring of a queue pair, or of several connections, inside a kernel: receives are posted, messages of peers
 * fill them.
 *
 * Life of a receive: *post* names memory for one message. *Commit* lets the NIC use it. A SEND of the peer, or a WRITE
 * with immediate, takes the oldest committed receive and completes it. *Wait* or *poll* hands the message out.
 * *Message* describes it. The receive at position k gets message k. Strong and weak posting are as in rdma.h.
 *
 * Connections that share a ring (rdma_connections.h) take receives in the order in which their messages begin, and the
 * ring hands messages out in the order in which they end: the receive at any position may get message k, and *message*
 * tells its buffer, and the connection. At most the depth less 1 receives are posted at a time.
 *
 * Receives may be posted before the queue pair is connected. Messages take them in the order of their positions. The
 * format is that of docs/formats.md, sections "Entries", "Shared receives" and "Completions".
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/queue/completion.h"
#include "weftio/device/queue/reserve.h"

/** Made by the host classes `rdma_queue` and `rdma_connections`. Kernels use it through the functions below only. */
struct weftio_dev_rdma_recv {
    /** Entries are enqueued and committed as in a send queue; its `completion` is what `taken` writes. */
    struct weftio_dev_send_queue queue;
    struct weftio_dev_completion_ring completions;
    const WEFTIO_GLOBAL struct weftio_cqe
        *connection;                   /**< collapsed completion of the send side: shows that the pair has failed */
    WEFTIO_GLOBAL weftio_u32 *taken;   /**< names the last message that was handed out; if shared, the one before it */
    weftio_u32 segments;               /**< pieces of memory in an entry */
    weftio_u32 received;               /**< next message to hand out */
    WEFTIO_GLOBAL weftio_u32 *entries; /**< shared ring: the entry of each of `depth` positions; 0: not shared */
    weftio_u32 reserved[4];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_rdma_recv) == (WEFTIO_DEV_ABI_RDMA_RECV & 0xffffu),
                     "host and device share this layout");

/** Whether `recv` is a receive ring: as weftio_dev_is_handle. */
WEFTIO_FN weftio_u32 weftio_dev_is_rdma_recv(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    return weftio_dev_is_handle(recv->queue.abi, WEFTIO_DEV_ABI_RDMA_RECV);
}

/**
 * Whether bytes of messages may arrive behind their completions: 1 or 0, as weftio_dev_rdma_needs_flush() of the same
 * queue pair. With WEFTIO_DEV_CHECKS 0 if `recv` is no receive ring.
 */
WEFTIO_FN weftio_u32 weftio_dev_rdma_recv_needs_flush(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    return weftio_dev_is_rdma_recv(recv) && weftio_load_constant_u32(&recv->queue.ring.needs_flush);
}

/** The request of the peer that took a receive. */
enum weftio_dev_rdma_kind {
    WEFTIO_DEV_RDMA_SEND = 0,
    WEFTIO_DEV_RDMA_SEND_IMM = 1,
    WEFTIO_DEV_RDMA_WRITE_IMM = 2, /**< its bytes lie where the WRITE put them, not in the buffer of the receive */
    WEFTIO_DEV_RDMA_SEND_INVAL = 3
};

/** One message, by value. */
struct weftio_dev_rdma_message {
    weftio_u64 timestamp_ns; /**< UTC of its completion; 0 after an error */
    weftio_u32 bytes;
    weftio_u32 immediate; /**< of SEND_IMM and WRITE_IMM; of SEND_INVAL the key */
    weftio_u32 kind;      /**< enum weftio_dev_rdma_kind */
    weftio_u32 solicited; /**< 1: the peer sent it with WEFTIO_DEV_RDMA_SOLICITED */
    weftio_u32 syndrome;  /**< enum weftio_syndrome of a receive that failed, else 0 */
    weftio_u32 reason;    /**< the NIC's own reason, for weftio::explain() at the host; else 0 */
    /** First piece of the receive, as it was posted: a SEND lies there. Of 0 bytes if the receive had none. */
    struct weftio_dev_buf buffer;
    weftio_u32 connection;   /**< index of the connection, in a ring that several share; else 0 */
    weftio_u32 source_queue; /**< datagrams: number of the sender's queue pair; else 0 */
    weftio_u32 is_ipv4;      /**< datagrams: 1: the IP header in the first 40 bytes is that of IPv4; else 0 */
};

/** Whether [offset, offset + bytes) lies in the buffer and one receive can have so many bytes. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_recv_fits(struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    return offset <= buffer.bytes && bytes <= buffer.bytes - offset && bytes <= 0x80000000u;
}

/** The entry at a position: of a shared ring, whichever had become free when the position did. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_recv_entry(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                weftio_u32 position)
{
    const weftio_u32 slot = position & recv->queue.ring.mask;

    return recv->entries ? weftio_load_relaxed_u32(recv->entries + slot) : slot;
}

/** Address of the first segment of an entry: a link if the ring is shared, else its first piece. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u32 *weftio_dev_rdma_recv_at(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                            weftio_u32 entry)
{
    return recv->queue.ring.segments + (weftio_u64)entry * (recv->segments + (recv->entries ? 1 : 0)) * 4;
}

/** Writes piece `piece` of an entry and ends the list of pieces behind it; 0 bytes end the list at `piece`. */
WEFTIO_FN void weftio_dev_rdma_write_piece(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 index,
                                           weftio_u32 piece, struct weftio_dev_buf buffer, weftio_u64 offset,
                                           weftio_u64 bytes)
{
    const weftio_u32 entry = weftio_dev_rdma_recv_entry(recv, index);
    WEFTIO_GLOBAL weftio_u32 *at = weftio_dev_rdma_recv_at(recv, entry) + (piece + (recv->entries ? 1 : 0)) * 4;
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
 * Posts a receive into [offset, offset + bytes) of the buffer at the next free position, and returns that position.
 * Never blocks. Any lane of any block, several at once. Do not use the bytes until the message has been handed out.
 *
 * @param bytes          0 .. 2^31; 0 is enough for a WRITE with immediate, or for a message without bytes
 * @param[out] position  free-running index of the receive, and of its message; unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no position is free: a position becomes free when its message is handed out;
 *         WEFTIO_DEV_INVALID_ARGUMENT the bytes reach beyond the buffer or are more than 2^31; with WEFTIO_DEV_CHECKS
 *         (handle.h) also: `recv` is no receive ring, or another version's. On error nothing is posted.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_post_position(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                        struct weftio_dev_buf buffer, weftio_u64 offset,
                                                        weftio_u64 bytes, weftio_u32 *position)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_rdma_recv(recv) || !weftio_dev_rdma_recv_fits(buffer, offset, bytes))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&recv->queue.ring);
    if (!weftio_dev_send_reserve(&recv->queue.ring, 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_rdma_write_piece(recv, claim.first, 0, buffer, offset, bytes);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first;
    return WEFTIO_DEV_OK;
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_post(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                               struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    weftio_u32 position;

    return weftio_dev_rdma_recv_post_position(recv, buffer, offset, bytes, &position);
}

/** Position of the next receive and mask of positions, for weak mode: as weftio_dev_send_queue_get_info. */
WEFTIO_FN void weftio_dev_rdma_recv_get_info(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                             weftio_u32 *position, weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&recv->queue, position, mask);
}

/**
 * Weak mode: posts a receive at `position`. Never blocks. Lanes of one block may call at once, each with positions of
 * its own. Before commit_weak every position must have its receive; until then another call with the same position
 * replaces the receive, its pieces included. As weftio_dev_rdma_recv_post_position otherwise.
 *
 * @pre message `position` - depth has been handed out; in a shared ring, also the one behind it
 * @param position  free-running, from weftio_dev_rdma_recv_get_info() on
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_recv_post_position, or `position` has been
 *         committed, or is the depth of the ring or more beyond the next one to commit. On error nothing is written.
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
 * Weak mode: adds a piece of memory to the receive at `position`. A message that fills piece `piece` - 1 continues in
 * it. As weftio_dev_rdma_recv_post_weak otherwise.
 *
 * @pre weftio_dev_rdma_recv_post_weak wrote piece 0 of `position`, then this function those up to `piece` - 1
 * @param bytes  1 .. 2^31
 * @param piece  1 .. rdma_queue_options::receive_segments - 1
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_recv_post_weak, or `bytes` is 0, or `piece` is
 *         out of its range
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
 * State of the queue pair, as weftio_dev_send_queue_status: its send ring and its receive ring fail together. Never
 * blocks; any lane.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the queue pair has failed; WEFTIO_DEV_ABORTED the host asks the kernel
 *         to end; WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS: `recv` is no receive ring, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_status(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    if (!weftio_dev_is_rdma_recv(recv))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    /* Acquire, pairs with the NIC's release: the receives that it flushed before are visible as flushed. */
    if (weftio_cqe_opcode(weftio_load_acquire_sys_u32(&recv->connection->publication)) ==
        WEFTIO_CQE_OPCODE_REQUESTER_ERROR)
        return WEFTIO_DEV_QUEUE_ERROR;
    return weftio_dev_aborted(recv->queue.control) ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
}

/** Status of a commit: that of the queue pair, if the commit itself succeeded. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_committed(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                    weftio_s32 status)
{
    return status == WEFTIO_DEV_OK ? weftio_dev_rdma_recv_status(recv) : status;
}

/**
 * Lets the NIC use the strong receives that are posted without a gap. No push is needed: the NIC reads receives when a
 * message arrives. As weftio_dev_send_queue_commit_strong otherwise. A failed queue pair uses no receive before
 * reset().
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_commit(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv)
{
    if (!weftio_dev_is_rdma_recv(recv))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_rdma_recv_committed(recv, weftio_dev_send_queue_commit_strong(&recv->queue));
}

/**
 * Same for the next `count` weak receives: as weftio_dev_send_queue_commit_weak; in a shared ring also
 * WEFTIO_DEV_INVALID_ARGUMENT if fewer positions than `count` are free.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_commit_weak(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 count)
{
    if (!weftio_dev_is_rdma_recv(recv) || (recv->entries && count > weftio_dev_send_room(&recv->queue.ring, count)))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_rdma_recv_committed(recv, weftio_dev_send_queue_commit_weak(&recv->queue, count));
}

/** Whether receive `index` has failed or was flushed. @pre it has completed */
WEFTIO_FN weftio_u32 weftio_dev_rdma_recv_is_error(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                   weftio_u32 index)
{
    weftio_u32 publication = weftio_load_relaxed_u32(&weftio_dev_completion_at(&recv->completions, index)->publication);

    return weftio_cqe_opcode(publication) == WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
}

/**
 * Shared ring: the entry of message `index` is free, and gets the position `index` + depth, behind the entry of the
 * position before it.
 */
WEFTIO_FN void weftio_dev_rdma_recv_free(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 index)
{
    const weftio_u32 publication =
        weftio_load_relaxed_u32(&weftio_dev_completion_at(&recv->completions, index)->publication);
    const weftio_u32 entry = weftio_cqe_wqe_counter(publication) & recv->queue.ring.mask;
    /* The position before is the last one, which is never committed, so the NIC does not read its link yet. */
    const weftio_u32 before = weftio_dev_rdma_recv_entry(recv, index - 1);

    weftio_store_relaxed_u32(weftio_dev_rdma_recv_at(recv, before), weftio_swap32(entry));
    weftio_store_relaxed_u32(recv->entries + (index & recv->queue.ring.mask), entry);
}

/**
 * Hands out messages [first, first + count). Returns what a wait for `wanted` messages that ended with `status`
 * returns.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_recv_hand_out(WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv, weftio_u32 first,
                                                   weftio_u32 count, weftio_u32 wanted, weftio_s32 status)
{
    const weftio_u32 shared = recv->entries ? 1 : 0, end = first + count;

    if (count && !shared && weftio_dev_rdma_recv_is_error(recv, end - 1))
        status = WEFTIO_DEV_QUEUE_ERROR;
    else if (count == wanted && status != WEFTIO_DEV_ABORTED)
        status = WEFTIO_DEV_OK;
    for (weftio_u32 index = first; shared && index != end; ++index)
        weftio_dev_rdma_recv_free(recv, index);
    if (count) {
        weftio_store_relaxed_u32(&recv->received, end);
        /*
         * Release, pairs with the acquire in weftio_dev_send_completed: completions are read before their positions are
         * posted again, and entries of a shared ring have their positions.
         */
        weftio_store_release_sys_u32(recv->taken,
                                     weftio_cqe_publication(end - 1 - shared, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    }
    weftio_dev_beat(recv->queue.control, &recv->queue.beats, WEFTIO_DEV_FUNCTION_RECEIVE, end, status);
    return status;
}

/**
 * Waits until `wanted` messages have arrived, and hands them out. Blocks until then, for `timeout_ns` at most (0: no
 * time bound); in inline mode this call runs the engine. One lane at a time; afterwards any lane may call
 * weftio_dev_rdma_recv_message.
 *
 * Messages [first, first + count) are handed out whatever the status is. Their bytes are the caller's, and their
 * positions are free: read a message (weftio_dev_rdma_recv_message) before its position is committed again. What may be
 * read at once, and what behind a flush, weftio_dev_completion_ready() says for memory of each kind.
 *
 * @param wanted      1 .. depth of the ring
 * @param[out] count  messages handed out: `wanted` when the status is OK, else `wanted` or fewer
 * @param[out] first  index of the first message, which is the position of its receive unless the ring is shared;
 *                    unchanged on INVALID_ARGUMENT
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT `timeout_ns` have passed; WEFTIO_DEV_ABORTED the host asks the kernel to
 *         end; WEFTIO_DEV_QUEUE_ERROR the queue pair has failed, and the last messages may be receives that failed or
 *         were flushed (never for a shared ring: a connection that fails completes the receive that it had taken, if
 *         any, and weftio_dev_rdma_recv_message tells); WEFTIO_DEV_INVALID_ARGUMENT `wanted` is 0 or above the depth;
 *         with WEFTIO_DEV_CHECKS also: `recv` is no receive ring, or another version's
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
 * Hands out the messages that have arrived, `most` at most. Never blocks; in inline mode this call runs the engine once
 * first. As weftio_dev_rdma_recv_wait otherwise, but the status is WEFTIO_DEV_OK also with fewer than `most`.
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

/** The first piece of an entry. */
WEFTIO_FN struct weftio_dev_buf weftio_dev_rdma_recv_buffer(const WEFTIO_GLOBAL struct weftio_dev_rdma_recv *recv,
                                                            weftio_u32 entry)
{
    const WEFTIO_GLOBAL weftio_u32 *piece = weftio_dev_rdma_recv_at(recv, entry) + (recv->entries ? 4 : 0);
    const weftio_u32 bytes = weftio_swap32(weftio_load_relaxed_u32(piece));
    const weftio_u64 high = weftio_swap32(weftio_load_relaxed_u32(piece + 2));
    struct weftio_dev_buf buffer = {0, 0, 0};

    buffer.lkey_be = weftio_load_relaxed_u32(piece + 1);
    if (buffer.lkey_be == weftio_swap32(WEFTIO_LKEY_INVALID))
        return buffer;
    buffer.address = (WEFTIO_GLOBAL weftio_u8 *)(high << 32 | weftio_swap32(weftio_load_relaxed_u32(piece + 3)));
    buffer.bytes = bytes ? bytes : 0x80000000u;
    return buffer;
}

/** The enum weftio_dev_rdma_kind of a completion with this opcode. */
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
 * Describes message `index`. Never blocks; any lane.
 *
 * @pre `index` was handed out, and position `index` + depth has not been committed or, in a shared ring, not posted
 * @param[out] message  unchanged unless the status is OK or QUEUE_ERROR
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the receive failed or was flushed, and `syndrome` is the cause;
 *         WEFTIO_DEV_NOT_FOUND the message was not handed out, or its completion has been overwritten;
 *         WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS: `recv` is no receive ring, or another version's
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
    message->buffer = weftio_dev_rdma_recv_buffer(recv, weftio_cqe_wqe_counter(publication) & recv->queue.ring.mask);
    message->connection = weftio_swap32(cqe->user_index_be) & 0xffffffu;
    message->source_queue = failed ? 0 : weftio_swap32(cqe->flags_rqpn_be) & 0xffffffu;
    message->is_ipv4 = !failed && weftio_swap32(cqe->flags_rqpn_be) >> 24 == WEFTIO_CQE_DATAGRAM_IPV4 >> 24;
    return failed ? WEFTIO_DEV_QUEUE_ERROR : WEFTIO_DEV_OK;
}
