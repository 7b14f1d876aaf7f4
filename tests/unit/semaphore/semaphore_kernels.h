/**
 * Kernels of the semaphore tests. Count, first and the WORDS words of custom info of item i are computed from i.
 */
#pragma once

#include "weftio/device/semaphore.h"

#define WORDS 9 /* no power of two, and an item's custom info is not its stride */

/** Results of all lanes of a kernel. */
struct account {
    weftio_u32 passed; /**< correct items */
    weftio_u32 wrong;  /**< wrong items */
    weftio_u32 failed; /**< calls that did not return WEFTIO_DEV_OK */
};

WEFTIO_FN weftio_u32 word_of(weftio_u32 index, weftio_u32 word)
{
    weftio_u32 mixed = (index * WORDS + word) * 2654435761u;

    return mixed ^ mixed >> 15;
}
WEFTIO_FN weftio_u32 count_of(weftio_u32 index)
{
    return word_of(index, 0) % 1000;
}
WEFTIO_FN weftio_u32 first_of(weftio_u32 index)
{
    return word_of(index, 1);
}

WEFTIO_FN void fill(const WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore, weftio_u32 index)
{
    WEFTIO_GLOBAL weftio_u32* words =
        (WEFTIO_GLOBAL weftio_u32*)weftio_dev_semaphore_get_custom_info_addr(semaphore, index);

    for (weftio_u32 word = 0; words && word < WORDS; ++word)
        words[word] = word_of(index, word);
}

WEFTIO_FN weftio_u32 words_are_right(const WEFTIO_GLOBAL weftio_u32* words, weftio_u32 index)
{
    weftio_u32 right = 1;

    for (weftio_u32 word = 0; words && word < WORDS; ++word)
        right &= words[word] == word_of(index, word);
    return right;
}

WEFTIO_FN weftio_u32 is_right(const WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore, weftio_u32 index,
                              weftio_u32 count, weftio_u32 first)
{
    const WEFTIO_GLOBAL void* info = weftio_dev_semaphore_get_custom_info_addr(semaphore, index);

    return count == count_of(index) && first == first_of(index) &&
           words_are_right((const WEFTIO_GLOBAL weftio_u32*)info, index);
}

WEFTIO_FN weftio_u32 grid_lane(void)
{
    return weftio_block() * weftio_block_lanes() + weftio_lane();
}
WEFTIO_FN weftio_u32 grid_lanes(void)
{
    return weftio_blocks() * weftio_block_lanes();
}

/** Waits for a free item, fills it, sets it READY. */
WEFTIO_FN weftio_s32 hand_over(const WEFTIO_GLOBAL struct weftio_dev_semaphore* out, weftio_u32 index)
{
    weftio_s32 status = weftio_dev_semaphore_wait_status(out, index, WEFTIO_DEV_SEMAPHORE_FREE, 0);

    if (status != WEFTIO_DEV_OK)
        return status;
    fill(out, index);
    return weftio_dev_semaphore_set_packet_info(out, index, WEFTIO_DEV_SEMAPHORE_READY, count_of(index),
                                                first_of(index));
}

/** Waits for a READY item, checks it, sets it FREE. */
WEFTIO_FN weftio_s32 take(const WEFTIO_GLOBAL struct weftio_dev_semaphore* in, weftio_u32 index,
                          WEFTIO_GLOBAL struct account* account)
{
    weftio_u32 count, first;
    weftio_s32 status = weftio_dev_semaphore_wait_packet_info(in, index, WEFTIO_DEV_SEMAPHORE_READY, 0, &count, &first);

    if (status != WEFTIO_DEV_OK)
        return status;
    weftio_fetch_add_u32(is_right(in, index, count, first) ? &account->passed : &account->wrong, 1);
    return weftio_dev_semaphore_set_status(in, index, WEFTIO_DEV_SEMAPHORE_FREE);
}

/** Lane k of n produces items k, k + n, ... below `total`. */
WEFTIO_KERNEL void produce_items(const WEFTIO_GLOBAL struct weftio_dev_semaphore* out, weftio_u32 total,
                                 WEFTIO_GLOBAL struct account* account)
{
    for (weftio_u32 index = grid_lane(); index < total; index += grid_lanes())
        if (hand_over(out, index) != WEFTIO_DEV_OK) {
            weftio_fetch_add_u32(&account->failed, 1);
            return;
        }
}

/** Lane k of n consumes items k, k + n, ... below `total`. */
WEFTIO_KERNEL void consume_items(const WEFTIO_GLOBAL struct weftio_dev_semaphore* in, weftio_u32 total,
                                 WEFTIO_GLOBAL struct account* account)
{
    for (weftio_u32 index = grid_lane(); index < total; index += grid_lanes())
        if (take(in, index, account) != WEFTIO_DEV_OK) {
            weftio_fetch_add_u32(&account->failed, 1);
            return;
        }
}

/** Consumes every item of `in` and produces an equal item in `out`. */
WEFTIO_KERNEL void relay_items(const WEFTIO_GLOBAL struct weftio_dev_semaphore* in,
                               const WEFTIO_GLOBAL struct weftio_dev_semaphore* out, weftio_u32 total,
                               WEFTIO_GLOBAL struct account* account)
{
    for (weftio_u32 index = grid_lane(); index < total; index += grid_lanes())
        if (take(in, index, account) != WEFTIO_DEV_OK || hand_over(out, index) != WEFTIO_DEV_OK) {
            weftio_fetch_add_u32(&account->failed, 1);
            return;
        }
}

/** Lane k of n asks with items k, k + n, ... below `total`, and checks that each comes back DONE, turned round. */
WEFTIO_KERNEL void ask_items(const WEFTIO_GLOBAL struct weftio_dev_semaphore* items, weftio_u32 total,
                             WEFTIO_GLOBAL struct account* account)
{
    weftio_u32 count, first;

    for (weftio_u32 index = grid_lane(); index < total; index += grid_lanes())
        if (hand_over(items, index) != WEFTIO_DEV_OK ||
            weftio_dev_semaphore_wait_packet_info(items, index, WEFTIO_DEV_SEMAPHORE_DONE, 0, &count, &first) !=
                WEFTIO_DEV_OK ||
            count != first_of(index) || first != count_of(index) ||
            weftio_dev_semaphore_set_status(items, index, WEFTIO_DEV_SEMAPHORE_FREE) != WEFTIO_DEV_OK) {
            weftio_fetch_add_u32(&account->failed, 1);
            return;
        }
}

/** Lane k of n checks items k, k + n, ... below `total`, and sets them DONE with count and first in turn. */
WEFTIO_KERNEL void answer_asked(const WEFTIO_GLOBAL struct weftio_dev_semaphore* items, weftio_u32 total,
                                WEFTIO_GLOBAL struct account* account)
{
    weftio_u32 count, first;

    for (weftio_u32 index = grid_lane(); index < total; index += grid_lanes()) {
        if (weftio_dev_semaphore_wait_packet_info(items, index, WEFTIO_DEV_SEMAPHORE_READY, 0, &count, &first) !=
                WEFTIO_DEV_OK ||
            weftio_dev_semaphore_set_status(items, index, WEFTIO_DEV_SEMAPHORE_HOLD) != WEFTIO_DEV_OK) {
            weftio_fetch_add_u32(&account->failed, 1);
            return;
        }
        weftio_fetch_add_u32(is_right(items, index, count, first) ? &account->passed : &account->wrong, 1);
        weftio_dev_semaphore_set_packet_info(items, index, WEFTIO_DEV_SEMAPHORE_DONE, first, count);
    }
}

/** Calls every function that does not wait, on FREE items from `index` on, and stores each result in `seen`. */
WEFTIO_KERNEL void call_each_function(const WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore, weftio_u32 index,
                                      WEFTIO_GLOBAL weftio_u32* seen)
{
    const weftio_u32 ready = WEFTIO_DEV_SEMAPHORE_READY;
    weftio_u32 count = 11, first = 12;

    *seen++ = (weftio_u32)weftio_dev_semaphore_get_packet_info_status(semaphore, index, ready, &count, &first);
    *seen++ = count;
    *seen++ = first;
    *seen++ = (weftio_u32)weftio_dev_semaphore_set_packet_info(semaphore, index, ready, 21, 22);
    *seen++ = (weftio_u32)weftio_dev_semaphore_get_packet_info_status(semaphore, index, ready, &count, &first);
    *seen++ = count;
    *seen++ = first;
    *seen++ = (weftio_u32)weftio_dev_semaphore_set_status(semaphore, index + 1, WEFTIO_DEV_SEMAPHORE_HOLD);
    *seen++ = weftio_dev_semaphore_get_status(semaphore, index);
    *seen++ = weftio_dev_semaphore_get_status(semaphore, index + 1);
    *seen++ = weftio_dev_semaphore_get_status(semaphore, index + 2);
    fill(semaphore, index);
}

/** Sets `status` on item `index`. */
WEFTIO_KERNEL void set_one(const WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore, weftio_u32 index,
                           weftio_u32 status, WEFTIO_GLOBAL weftio_s32* result)
{
    weftio_s32 returned = weftio_dev_semaphore_set_status(semaphore, index, status);

    if (weftio_lane() == 0)
        weftio_store_release_sys_u32((WEFTIO_GLOBAL weftio_u32*)&result[weftio_block()], (weftio_u32)returned);
}

/** Waits for item `index`; `result` is the status of the wait. */
WEFTIO_KERNEL void wait_once(const WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore, weftio_u32 index,
                             weftio_u32 status, weftio_u64 timeout_ns, WEFTIO_GLOBAL weftio_s32* result)
{
    weftio_s32 returned = weftio_dev_semaphore_wait_status(semaphore, index, status, timeout_ns);

    weftio_store_release_sys_u32((WEFTIO_GLOBAL weftio_u32*)result, (weftio_u32)returned);
}
