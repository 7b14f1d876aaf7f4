/*
 * The send side of a kernel: frames are composed in the buffers of an array, one for each entry of the send ring, and
 * sent by weak entries. A burst of frames is committed at once.
 */
#pragma once

#include "answers.h"
#include "weftio/device/eth_txq.h"

struct sender {
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq;
    const WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames;
    WEFTIO_GLOBAL struct packets_counters* counters;
    weftio_u32 position;  /* of the next entry */
    weftio_u32 committed; /* entries below it are the NIC's */
    weftio_u32 completed; /* as last read */
    weftio_u32 mask;
    /* The answer whose time is measured: one at a time. */
    weftio_u32 timed_position;
    weftio_u64 timed_arrival_ns; /* UTC; 0: none */
};

WEFTIO_FN struct sender start_sending(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                      const WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                                      WEFTIO_GLOBAL struct packets_counters* counters)
{
    struct sender sender;

    sender.txq = txq;
    sender.frames = frames;
    sender.counters = counters;
    weftio_dev_eth_txq_get_info(txq, &sender.position, &sender.mask);
    sender.committed = sender.position;
    sender.completed = weftio_dev_eth_txq_completed(txq);
    sender.timed_position = 0;
    sender.timed_arrival_ns = 0;
    return sender;
}

/* Commits what has been enqueued, and makes the NIC look. */
WEFTIO_FN void flush_frames(struct sender* sender)
{
    if (sender->position == sender->committed)
        return;
    weftio_dev_eth_txq_commit_weak(sender->txq, sender->position - sender->committed);
    weftio_dev_eth_txq_push(sender->txq);
    sender->committed = sender->position;
}

/* Whether an entry is free; looks at the NIC's progress when none seems to be. */
WEFTIO_FN weftio_u32 has_room(struct sender* sender)
{
    if (sender->position - sender->completed <= sender->mask)
        return 1;
    flush_frames(sender);
    sender->completed = weftio_dev_eth_txq_completed(sender->txq);
    return sender->position - sender->completed <= sender->mask;
}

/* A buffer for the next frame. @pre has_room() */
WEFTIO_FN struct answer begin_frame(const struct sender* sender)
{
    struct weftio_dev_buf buffer = weftio_dev_buf_get(sender->frames, sender->position & sender->mask);
    struct answer answer;

    answer.at = buffer.address;
    answer.room = buffer.bytes;
    answer.bytes = 0;
    answer.flags = WEFTIO_DEV_SEND_NONE;
    return answer;
}

/* Enqueues the frame that has been composed, if there is one. `arrival_ns`: of the frame that it answers, or 0. */
WEFTIO_FN void end_frame(struct sender* sender, const struct answer* answer, weftio_u64 arrival_ns)
{
    if (!answer->bytes)
        return;
    struct weftio_dev_buf buffer = weftio_dev_buf_get(sender->frames, sender->position & sender->mask);
    weftio_dev_eth_txq_send_enqueue_weak(sender->txq, buffer, answer->bytes, sender->position, answer->flags);
    ++sender->counters->sent;
    sender->counters->sent_bytes += answer->bytes;
    if (arrival_ns && !sender->timed_arrival_ns) {
        sender->timed_arrival_ns = arrival_ns;
        sender->timed_position = sender->position;
    }
    ++sender->position;
}

/* Counts the time of the answer that is measured, once the NIC has sent it. Both times are the NIC's. */
WEFTIO_FN void measure_answer(struct sender* sender)
{
    weftio_u64 sent_ns;

    if (!sender->timed_arrival_ns || sender->timed_position - sender->committed < 0x80000000u)
        return; /* none, or not committed */
    if (weftio_dev_eth_txq_poll_completion(sender->txq, sender->timed_position, &sent_ns) != WEFTIO_DEV_OK)
        return;
    weftio_u64 ns = sent_ns > sender->timed_arrival_ns ? sent_ns - sender->timed_arrival_ns : 0;
    ++sender->counters->times[time_bucket(ns)];
    sender->timed_arrival_ns = 0;
}
