/* Kernels that use queue pairs. */
#pragma once

#include "weftio/device/rdma.h"

#define RDMA_STATUSES 32

/*
 * One lane uses each operation once: from queue pair `near_end` to the memory of the peer, whose receive ring is
 * `peer_end`. `mine` has one buffer of 4096 bytes, and the peer's memory has 4096 bytes. Statuses are stored in `said`,
 * the fields of received messages in `reported`.
 */
WEFTIO_KERNEL void rdma_does_everything(WEFTIO_GLOBAL struct weftio_dev_rdma* near_end,
                                        WEFTIO_GLOBAL struct weftio_dev_rdma_recv* peer_end,
                                        struct weftio_dev_remote peer, WEFTIO_GLOBAL struct weftio_dev_buf_arr* mine,
                                        WEFTIO_GLOBAL struct weftio_dev_buf_arr* theirs, WEFTIO_GLOBAL weftio_u32* said,
                                        WEFTIO_GLOBAL weftio_u32* reported)
{
    struct weftio_dev_buf here = weftio_dev_buf_get(mine, 0), there = weftio_dev_buf_get(theirs, 0);
    struct weftio_dev_rdma_message message;
    weftio_u32 at = 0, count = 0, first = 0;

    for (weftio_u32 each = 0; each < 4; ++each)
        said[at++] = (weftio_u32)weftio_dev_rdma_recv_post(peer_end, there, 3072 + each * 64, 64);
    said[at++] = (weftio_u32)weftio_dev_rdma_recv_commit(peer_end);
    said[at++] = (weftio_u32)weftio_dev_rdma_write(near_end, peer, 0, here, 100, 1500, WEFTIO_DEV_SEND_NONE);
    said[at++] = (weftio_u32)weftio_dev_rdma_write_imm(near_end, peer, 1600, here, 0, 64, 7, WEFTIO_DEV_SEND_NONE);
    said[at++] = (weftio_u32)weftio_dev_rdma_write_inline(near_end, peer, 1700, here.address, 28, WEFTIO_DEV_SEND_NONE);
    said[at++] =
        (weftio_u32)weftio_dev_rdma_write_value(near_end, peer, 1736, 0x0102030405060708ul, WEFTIO_DEV_SEND_NONE);
    said[at++] = (weftio_u32)weftio_dev_rdma_send(near_end, here, 0, 64, WEFTIO_DEV_RDMA_SOLICITED);
    said[at++] = (weftio_u32)weftio_dev_rdma_send_imm(near_end, here, 64, 32, 0xfedcba98u, WEFTIO_DEV_SEND_NONE);
    said[at++] = (weftio_u32)weftio_dev_rdma_read(near_end, peer, 2048, here, 2048, 512, WEFTIO_DEV_SEND_NONE);
    said[at++] = (weftio_u32)weftio_dev_rdma_fetch_add(near_end, peer, 2560, 5, here, 2560, WEFTIO_DEV_SEND_NONE);
    said[at++] =
        (weftio_u32)weftio_dev_rdma_compare_swap(near_end, peer, 2568, 1000, 2000, here, 2568, WEFTIO_DEV_RDMA_FENCE);
    said[at++] = (weftio_u32)weftio_dev_rdma_write_signal(
        near_end, weftio_dev_rdma_write_request(peer, 2600, here, 0, 200), peer, 2816, 42, WEFTIO_DEV_SEND_NONE);
    said[at++] = (weftio_u32)weftio_dev_rdma_flush(near_end, here, 2048, 512, WEFTIO_DEV_RDMA_FENCE);
    said[at++] = weftio_dev_rdma_needs_flush(near_end); /* engines of Weftio: no */
    said[at++] = weftio_dev_rdma_recv_needs_flush(peer_end);
    said[at++] = (weftio_u32)weftio_dev_rdma_commit_wait(near_end, 0);
    said[at++] = (weftio_u32)weftio_dev_rdma_wait_value(near_end,
                                                        (const WEFTIO_GLOBAL weftio_u64*)(there.address + 2816), 42, 0);
    said[at++] = (weftio_u32)weftio_dev_rdma_recv_wait(peer_end, 3, 0, &count, &first);
    for (weftio_u32 each = 0; each < count; ++each) {
        weftio_s32 status = weftio_dev_rdma_recv_message(peer_end, first + each, &message);
        said[at++] = (weftio_u32)status;
        if (status != WEFTIO_DEV_OK)
            return;
        reported[each * 4] = message.kind;
        reported[each * 4 + 1] = message.bytes;
        reported[each * 4 + 2] = message.immediate;
        reported[each * 4 + 3] = message.solicited;
    }
    said[RDMA_STATUSES] = at;
}

/*
 * Lane i writes pieces i, i + lanes, ... of its own memory to the same offsets of the peer's memory, each by an entry
 * of its own, and waits. `said[0]` is a status that was not OK, `said[1]` counts lanes.
 */
WEFTIO_KERNEL void rdma_writes_pieces(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma, struct weftio_dev_remote peer,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* mine, WEFTIO_GLOBAL weftio_u32* said)
{
    weftio_u32 lanes = weftio_blocks() * weftio_block_lanes(), position = 0;

    for (weftio_u32 piece = weftio_block() * weftio_block_lanes() + weftio_lane(); piece < mine->count;
         piece += lanes) {
        struct weftio_dev_buf buffer = weftio_dev_buf_get(mine, piece);
        weftio_s32 status = WEFTIO_DEV_FULL;
        for (weftio_u32 attempt = 0; status == WEFTIO_DEV_FULL && !weftio_dev_rdma_aborted(rdma); ++attempt) {
            status = weftio_dev_rdma_enqueue_position(
                rdma, weftio_dev_rdma_write_request(peer, (weftio_u64)piece * buffer.bytes, buffer, 0, buffer.bytes),
                WEFTIO_DEV_SEND_NONE, &position);
            weftio_relax(attempt);
        }
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_rdma_commit(rdma);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_rdma_wait(rdma, position, 0);
        if (status != WEFTIO_DEV_OK)
            weftio_store_relaxed_u32(&said[0], (weftio_u32)-status);
    }
    weftio_fetch_add_relaxed_u32(&said[1], 1);
}

/*
 * One end of `rounds` round trips of a page with a new content each, by write_signal and wait_value. A page is 1024
 * bytes at the start of a buffer; its signal is a word after it. `said` counts correct pages.
 */
WEFTIO_FN void rdma_play_end(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma, struct weftio_dev_remote peer,
                             struct weftio_dev_buf mine, weftio_u32 second, weftio_u32 rounds,
                             WEFTIO_GLOBAL weftio_u32* said)
{
    WEFTIO_GLOBAL weftio_u32* page = (WEFTIO_GLOBAL weftio_u32*)mine.address;
    const WEFTIO_GLOBAL weftio_u64* signal = (const WEFTIO_GLOBAL weftio_u64*)(mine.address + 2048);
    weftio_u32 position = 0;

    for (weftio_u32 round = 1; round <= rounds; ++round) {
        weftio_u32 right = 1;
        if (second && weftio_dev_rdma_wait_value(rdma, signal, round, 0) != WEFTIO_DEV_OK)
            return;
        for (weftio_u32 word = 0; second && word < 256; ++word)
            right &= page[256 + word] == round * 1000 + word;
        for (weftio_u32 word = 0; word < 256; ++word)
            page[word] = round * 1000 + word + second;
        if (weftio_dev_rdma_write_signal_position(rdma, weftio_dev_rdma_write_request(peer, 1024, mine, 0, 1024), peer,
                                                  2048, round, WEFTIO_DEV_SEND_NONE, &position) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_commit(rdma) != WEFTIO_DEV_OK || weftio_dev_rdma_wait(rdma, position, 0) != WEFTIO_DEV_OK)
            return;
        if (!second && weftio_dev_rdma_wait_value(rdma, signal, round, 0) != WEFTIO_DEV_OK)
            return;
        for (weftio_u32 word = 0; !second && word < 256; ++word)
            right &= page[256 + word] == round * 1000 + word + 1;
        *said += right;
    }
}

/* Two blocks, one at each end. */
WEFTIO_KERNEL void rdma_plays_ping_pong(WEFTIO_GLOBAL struct weftio_dev_rdma* first_end,
                                        WEFTIO_GLOBAL struct weftio_dev_rdma* second_end,
                                        struct weftio_dev_remote first_memory, struct weftio_dev_remote second_memory,
                                        WEFTIO_GLOBAL struct weftio_dev_buf_arr* first_arr,
                                        WEFTIO_GLOBAL struct weftio_dev_buf_arr* second_arr, weftio_u32 rounds,
                                        WEFTIO_GLOBAL weftio_u32* said)
{
    weftio_u32 second = weftio_block();

    rdma_play_end(second ? second_end : first_end, second ? first_memory : second_memory,
                  weftio_dev_buf_get(second ? second_arr : first_arr, 0), second, rounds, said + second);
}

/* The first end, or the second. */
WEFTIO_KERNEL void rdma_plays_one_end(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma, struct weftio_dev_remote peer,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* arr, weftio_u32 second,
                                      weftio_u32 rounds, WEFTIO_GLOBAL weftio_u32* said)
{
    rdma_play_end(rdma, peer, weftio_dev_buf_get(arr, 0), second, rounds, said);
}

/*
 * Two blocks. Block 0 lends 64 bytes of its buffer by a window of type 2, anew in each round; block 1 writes there and
 * returns the window by SEND with invalidate. The lender tells the key by a number, of which the upper half counts
 * rounds. `said[block]` counts rounds that went as they should. Block 1 writes once more at the end, which is refused.
 */
WEFTIO_KERNEL void rdma_lends(WEFTIO_GLOBAL struct weftio_dev_rdma* lender,
                              WEFTIO_GLOBAL struct weftio_dev_rdma_recv* returns,
                              WEFTIO_GLOBAL struct weftio_dev_rdma* borrower,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* lender_arr,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* borrower_arr, struct weftio_dev_remote note,
                              weftio_u32 window, weftio_u32 rounds, WEFTIO_GLOBAL weftio_u32* said)
{
    struct weftio_dev_buf lent = weftio_dev_buf_get(lender_arr, 0), mine = weftio_dev_buf_get(borrower_arr, 0);
    const WEFTIO_GLOBAL weftio_u64* told = (const WEFTIO_GLOBAL weftio_u64*)(mine.address + 2048);
    struct weftio_dev_remote through = {(weftio_u64)lent.address, 4096, 0, 0};
    struct weftio_dev_rdma_message message;
    weftio_u32 count, first;

    for (weftio_u32 round = 1; round <= rounds && weftio_block() == 0; ++round) {
        const weftio_u32 next = weftio_dev_rdma_next_rkey(window);
        weftio_dev_rdma_recv_post(returns, lent, 1024, 8);
        weftio_dev_rdma_recv_commit(returns);
        if (weftio_dev_rdma_enqueue(lender,
                                    weftio_dev_rdma_bind_request(window, next, WEFTIO_DEV_WINDOW_TYPE_2, lent, 512, 64,
                                                                 WEFTIO_DEV_RDMA_REMOTE_WRITE),
                                    WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_write_value(lender, note, 0, (weftio_u64)round << 32 | next, WEFTIO_DEV_SEND_NONE) !=
                WEFTIO_DEV_OK ||
            weftio_dev_rdma_commit_wait(lender, 0) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_recv_wait(returns, 1, 0, &count, &first) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_recv_message(returns, first, &message) != WEFTIO_DEV_OK)
            return;
        said[0] += message.kind == WEFTIO_DEV_RDMA_SEND_INVAL && message.immediate == next;
        window = next;
    }
    if (weftio_block() == 0) { // the refused write ends this queue too: not before the last return has been seen
        weftio_dev_rdma_write_value(lender, note, 0, (weftio_u64)(rounds + 1) << 32, WEFTIO_DEV_SEND_NONE);
        weftio_dev_rdma_commit_wait(lender, 0);
    }
    for (weftio_u32 round = 1; round <= rounds && weftio_block() == 1; ++round) {
        if (weftio_dev_rdma_wait_value(borrower, told, (weftio_u64)round << 32, 0) != WEFTIO_DEV_OK)
            return;
        through.rkey_be = weftio_swap32((weftio_u32)*told);
        if (weftio_dev_rdma_write(borrower, through, 512, mine, 0, 64, WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_send_inval(borrower, mine, 0, 8, (weftio_u32)*told, WEFTIO_DEV_SEND_NONE) !=
                WEFTIO_DEV_OK ||
            weftio_dev_rdma_commit_wait(borrower, 0) != WEFTIO_DEV_OK)
            return;
        ++said[1];
    }
    if (weftio_block() == 1 &&
        weftio_dev_rdma_wait_value(borrower, told, (weftio_u64)(rounds + 1) << 32, 0) == WEFTIO_DEV_OK) {
        weftio_dev_rdma_write(borrower, through, 512, mine, 1024, 64, WEFTIO_DEV_SEND_NONE);
        said[1] += weftio_dev_rdma_commit_wait(borrower, 0) == WEFTIO_DEV_QUEUE_ERROR;
    }
}
