/**
 * Semaphores: numbered items that pass from kernel to kernel, or between a kernel and the CPU.
 *
 * Life of an item: the *producer* waits until the item is FREE, fills its packet info and custom info, and sets it
 * READY. The *consumer* waits for READY, reads, and sets it FREE; or DONE, if the producer reads a result. HOLD means
 * that an item is being filled or processed, ERROR that the processing failed.
 *
 * Indices run freely and wrap at 2^32: item = index % items. If `items` is no power of two, 2^32 is no multiple of it:
 * advance with weftio_dev_semaphore_next(), or count within 0 .. items - 1, which also needs no division. An item has
 * one owner at a time, and only the owner may write it. Setting a status passes the item on: what was written before is
 * visible to a reader of that status. Items of different indices are independent, so any lanes and blocks may work on
 * different items at once. Every function is called by one lane for itself.
 *
 * A semaphore of two devices (semaphore_options::peer) keeps a copy of each item in the memory of either device. A
 * kernel reads the copy of its own device and writes to that of the other, so that nobody polls over the bus. Its items
 * pass from device to device: a status is no signal to other kernels of the device that sets it.
 *
 * With WEFTIO_DEV_CHECKS (handle.h), if the handle is no semaphore, or another version's: functions that return a
 * status of their own return WEFTIO_DEV_INVALID_ARGUMENT, the status of an item is WEFTIO_DEV_SEMAPHORE_ERROR, and an
 * address is 0.
 */
#pragma once

#include "weftio/device/clock.h"
#include "weftio/device/handle.h"
#include "weftio/device/queue/control.h"

/** Status of an item. Other values are refused if transitions are checked. */
enum weftio_dev_semaphore_status {
    WEFTIO_DEV_SEMAPHORE_FREE = 0,
    WEFTIO_DEV_SEMAPHORE_READY = 1,
    WEFTIO_DEV_SEMAPHORE_HOLD = 2,
    WEFTIO_DEV_SEMAPHORE_DONE = 3,
    WEFTIO_DEV_SEMAPHORE_ERROR = 4
};

/** Four items share a cache line: from core to core this is faster than a line for each item (bench/semaphore). */
struct weftio_dev_semaphore_item {
    weftio_u32 status;
    weftio_u32 count; /**< packets */
    weftio_u32 first; /**< index of the first packet in its queue */
    weftio_u32 own;   /**< semaphore of two devices: the word that this device has written last to the other one */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_semaphore_item) == 16, "host and device share this layout");

/** Refused transitions, if transitions are checked. The host reads this. */
struct weftio_dev_semaphore_illegal {
    weftio_u32 count;    /**< transitions refused */
    weftio_u32 recorded; /**< 1 once the three values below are written, which describe the first */
    weftio_u32 index;
    weftio_u32 from;
    weftio_u32 to;
    weftio_u32 reserved[11];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_semaphore_illegal) == 64, "host and device share this layout");

/** Made by the host class `semaphore`; read-only for kernels, which use it through the functions below only. */
struct weftio_dev_semaphore {
    weftio_u32 abi;  /**< WEFTIO_DEV_ABI_SEMAPHORE */
    weftio_u32 mask; /**< items - 1 if `items` is a power of two; else all bits */
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *items;
    WEFTIO_GLOBAL weftio_u8 *custom_info; /**< custom info of item 0; 0 if items have none */
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_illegal *illegal; /**< 0: transitions are not checked */
    weftio_u32 custom_info_stride_bytes;
    weftio_u32 count;
    weftio_u32 end; /**< one past the last index: the largest multiple of `count` up to 2^32; 0: 2^32 */
    weftio_u32 reserved;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *peer_items; /**< copies of the other device; 0: one device */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_semaphore) == (WEFTIO_DEV_ABI_SEMAPHORE & 0xffffu),
                     "host and device share this layout");

#define WEFTIO_DEV_SEMAPHORE_BIT(FROM, TO) (1u << (WEFTIO_DEV_SEMAPHORE_##FROM * 5 + WEFTIO_DEV_SEMAPHORE_##TO))
#define WEFTIO_DEV_SEMAPHORE_LEGAL                                                                                     \
    (WEFTIO_DEV_SEMAPHORE_BIT(FREE, READY) | WEFTIO_DEV_SEMAPHORE_BIT(FREE, HOLD) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(HOLD, READY) | WEFTIO_DEV_SEMAPHORE_BIT(HOLD, FREE) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(HOLD, DONE) | WEFTIO_DEV_SEMAPHORE_BIT(HOLD, ERROR) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(READY, HOLD) | WEFTIO_DEV_SEMAPHORE_BIT(READY, DONE) |                                   \
     WEFTIO_DEV_SEMAPHORE_BIT(READY, ERROR) | WEFTIO_DEV_SEMAPHORE_BIT(READY, FREE) |                                  \
     WEFTIO_DEV_SEMAPHORE_BIT(DONE, FREE) | WEFTIO_DEV_SEMAPHORE_BIT(DONE, READY) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(ERROR, FREE))

/** Whether an item may go from status `from` to status `to`. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_is_legal(weftio_u32 from, weftio_u32 to)
{
    return from <= WEFTIO_DEV_SEMAPHORE_ERROR && to <= WEFTIO_DEV_SEMAPHORE_ERROR &&
           (WEFTIO_DEV_SEMAPHORE_LEGAL >> (from * 5 + to) & 1);
}

/** The item of `index`: index % items. Never blocks; divides only if `items` is no power of two. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_slot(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                               weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return 0;
    weftio_u32 mask = weftio_load_constant_u32(&semaphore->mask);

    if (mask != 0xffffffffu)
        return index & mask;
    weftio_u32 count = weftio_load_constant_u32(&semaphore->count);

    return index < count ? index : index % count;
}

/** The index after `index`: index + 1, or 0 if another round does not fit below 2^32. Never blocks. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_next(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                               weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return 0;
    return index + 1 == semaphore->end ? 0 : index + 1;
}

/** An item, and its copy in the memory of the other device: 0 if the semaphore has one device. */
struct weftio_dev_semaphore_place {
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *peer;
};

/** Where item `index` lies. Functions of this header look once: after a store they would reload the handle. */
WEFTIO_FN_INLINED struct weftio_dev_semaphore_place
weftio_dev_semaphore_place_of(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index)
{
    weftio_u64 items = weftio_load_constant_u64(&semaphore->items);
    weftio_u64 peers = weftio_load_constant_u64(&semaphore->peer_items);
    weftio_u32 slot = weftio_dev_semaphore_slot(semaphore, index);
    struct weftio_dev_semaphore_place place;

    place.item = (WEFTIO_GLOBAL struct weftio_dev_semaphore_item *)items + slot;
    place.peer = peers ? (WEFTIO_GLOBAL struct weftio_dev_semaphore_item *)peers + slot : 0;
    return place;
}

/**
 * Word of a status of a semaphore of two devices: the status in the lowest three bits, and above it a number that
 * grows with each change by either device.
 */
#define WEFTIO_DEV_SEMAPHORE_STATUS_BITS 7u

/**
 * The newer of two words of an item: `seen`, which the other device has written, and `own`. Either device may write up
 * to 2^28 times in a row.
 */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_newer(weftio_u32 seen, weftio_u32 own)
{
    return (weftio_s32)(seen - own) < 0 ? own : seen;
}

/** Status of an item. */
WEFTIO_FN_INLINED weftio_u32 weftio_dev_semaphore_status_of(struct weftio_dev_semaphore_place place)
{
    weftio_u32 own = place.peer ? weftio_load_relaxed_u32(&place.item->own) : 0; /* first: nothing waits for it */
    /*
     * Acquire, pairs with the release in weftio_dev_semaphore_publish: packet info and custom info are visible
     * afterwards.
     */
    weftio_u32 seen = weftio_load_acquire_sys_u32(&place.item->status);

    return place.peer ? weftio_dev_semaphore_newer(seen, own) & WEFTIO_DEV_SEMAPHORE_STATUS_BITS : seen;
}

/** Status of item `index`. Never blocks. What was written before that status was set may be read afterwards. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_get_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                     weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_SEMAPHORE_ERROR;
    return weftio_dev_semaphore_status_of(weftio_dev_semaphore_place_of(semaphore, index));
}

/** Sets the status of an item, which passes it to its next owner. */
WEFTIO_FN_INLINED void weftio_dev_semaphore_publish(struct weftio_dev_semaphore_place place, weftio_u32 status)
{
    WEFTIO_GLOBAL weftio_u32 *to = &place.item->status;
    weftio_u32 word = status;

    if (place.peer) {
        word = weftio_load_relaxed_u32(&place.item->own);
        word = weftio_dev_semaphore_newer(weftio_load_relaxed_u32(&place.item->status), word);
        word = (word | WEFTIO_DEV_SEMAPHORE_STATUS_BITS) + 1 + (status & WEFTIO_DEV_SEMAPHORE_STATUS_BITS);
        to = &place.peer->status;
    }
    /*
     * Release, pairs with the acquire in weftio_dev_semaphore_status_of: all that the owner wrote and read comes
     * before.
     */
    weftio_store_release_sys_u32(to, word);
    /* Behind the release, which would wait for it. The other device never writes this word, so no order is needed. */
    if (place.peer)
        weftio_store_relaxed_u32(&place.item->own, word);
}

/** Counts a refused transition and remembers the first. */
WEFTIO_FN void weftio_dev_semaphore_record(WEFTIO_GLOBAL struct weftio_dev_semaphore_illegal *illegal, weftio_u32 index,
                                           weftio_u32 from, weftio_u32 to)
{
    if (weftio_fetch_add_u32(&illegal->count, 1) != 0)
        return;
    weftio_store_relaxed_u32(&illegal->index, index);
    weftio_store_relaxed_u32(&illegal->from, from);
    weftio_store_relaxed_u32(&illegal->to, to);
    /* Release, pairs with the host's acquire: index, from and to are written first. */
    weftio_store_release_sys_u32(&illegal->recorded, 1);
}

/**
 * Whether transitions are checked and the item at `place`, that of `index`, must not go to status `to`: 1 or 0. Counts
 * the refused transition.
 */
WEFTIO_FN_INLINED weftio_u32 weftio_dev_semaphore_refuses(WEFTIO_GLOBAL struct weftio_dev_semaphore_illegal *illegal,
                                                          struct weftio_dev_semaphore_place place, weftio_u32 index,
                                                          weftio_u32 to)
{
    if (!illegal)
        return 0;
    weftio_u32 from = weftio_dev_semaphore_status_of(place);

    if (weftio_dev_semaphore_is_legal(from, to))
        return 0;
    weftio_dev_semaphore_record(illegal, index, from, to);
    return 1;
}

/**
 * Sets the status of item `index`, which passes the item to its next owner. Never blocks.
 *
 * @pre the caller owns the item
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT transitions are checked and this one is illegal: the item is
 *         unchanged, and the host class reports it
 */
WEFTIO_FN_INLINED weftio_s32 weftio_dev_semaphore_set_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                             weftio_u32 index, weftio_u32 status)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);

    if (weftio_dev_semaphore_refuses(semaphore->illegal, place, index, status))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_semaphore_publish(place, status);
    return WEFTIO_DEV_OK;
}

/** Writes packet info to one copy of an item. */
WEFTIO_FN_INLINED void weftio_dev_semaphore_store_info(WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item,
                                                       weftio_u32 count, weftio_u32 first)
{
    weftio_store_relaxed_u32(&item->count, count);
    weftio_store_relaxed_u32(&item->first, first);
}

/** Writes packet info, then sets the status of the item: as weftio_dev_semaphore_set_status. */
WEFTIO_FN_INLINED weftio_s32
weftio_dev_semaphore_set_packet_info(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index,
                                     weftio_u32 status, weftio_u32 count, weftio_u32 first)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);

    if (weftio_dev_semaphore_refuses(semaphore->illegal, place, index, status))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_semaphore_store_info(place.item, count, first);
    if (place.peer)
        weftio_dev_semaphore_store_info(place.peer, count, first);
    weftio_dev_semaphore_publish(place, status);
    return WEFTIO_DEV_OK;
}

/**
 * Packet info of item `index` if its status is `status`. Never blocks, and works after an abort too: a kernel that must
 * end can still empty a semaphore.
 *
 * @param[out] count  packets; unchanged unless WEFTIO_DEV_OK is returned, as is `first`
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_NOT_FOUND the item has another status
 */
WEFTIO_FN weftio_s32
weftio_dev_semaphore_get_packet_info_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                            weftio_u32 index, weftio_u32 status, weftio_u32 *count, weftio_u32 *first)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);

    if (weftio_dev_semaphore_status_of(place) != status)
        return WEFTIO_DEV_NOT_FOUND;
    *count = weftio_load_relaxed_u32(&place.item->count);
    *first = weftio_load_relaxed_u32(&place.item->first);
    return WEFTIO_DEV_OK;
}

/** Address of the custom info of item `index`, 64-byte aligned; 0 if items have none. Never blocks. */
WEFTIO_FN WEFTIO_GLOBAL void *
weftio_dev_semaphore_get_custom_info_addr(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE) || !semaphore->custom_info)
        return 0;
    return semaphore->custom_info +
           (weftio_u64)weftio_dev_semaphore_slot(semaphore, index) * semaphore->custom_info_stride_bytes;
}

/** WEFTIO_DEV_TIMEOUT if the timeout of a wait has passed, else WEFTIO_DEV_NOT_FOUND. It starts at the first call. */
WEFTIO_FN weftio_s32 weftio_dev_semaphore_late(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                               weftio_u64 timeout_ns, weftio_u64 *deadline_ns)
{
    if (!timeout_ns)
        return WEFTIO_DEV_NOT_FOUND;
    weftio_u64 now_ns = weftio_dev_clock_ns(semaphore->clock);

    if (!*deadline_ns)
        *deadline_ns = weftio_dev_deadline_ns(now_ns, timeout_ns);
    return now_ns >= *deadline_ns ? WEFTIO_DEV_TIMEOUT : WEFTIO_DEV_NOT_FOUND;
}

/**
 * A wait that succeeds at once leaves a trace only for one item in this many: producer and consumer write the trace to
 * the same cache line.
 */
#define WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS 64u

/**
 * Whether attempt `attempt` of a wait looks at the abort flag and leaves a trace: each does, but between two devices
 * every 64th, since both lie in memory of the host, which a GPU reaches more slowly than the other GPU.
 */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_looks(struct weftio_dev_semaphore_place place, weftio_u32 index,
                                                weftio_u32 attempt)
{
    return !place.peer || attempt % WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS == WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS - 1 ||
           (attempt == 0 && index % WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS == 0);
}

/** Waits until the item at `place`, the item of `index`, has status `status`; see weftio_dev_semaphore_wait_status. */
WEFTIO_FN_INLINED weftio_s32 weftio_dev_semaphore_wait_item(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                            struct weftio_dev_semaphore_place place, weftio_u32 index,
                                                            weftio_u32 status, weftio_u64 timeout_ns)
{
    WEFTIO_GLOBAL struct weftio_dev_control *control =
        (WEFTIO_GLOBAL struct weftio_dev_control *)weftio_load_constant_u64(&semaphore->control);
    weftio_u64 deadline_ns = 0;

    for (weftio_u32 attempt = 0;; ++attempt) {
        const weftio_u32 looks = weftio_dev_semaphore_looks(place, index, attempt);
        weftio_s32 result = WEFTIO_DEV_OK;

        if (looks && weftio_dev_aborted(control))
            result = WEFTIO_DEV_ABORTED;
        else if (weftio_dev_semaphore_status_of(place) != status)
            result = weftio_dev_semaphore_late(semaphore, timeout_ns, &deadline_ns);
        else if (index % WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS)
            return WEFTIO_DEV_OK;
        if (looks)
            weftio_dev_beat(control, &control->beats, WEFTIO_DEV_FUNCTION_SEMAPHORE, index, result);
        if (result != WEFTIO_DEV_NOT_FOUND)
            return result;
        weftio_relax(attempt);
    }
}

/**
 * Waits until item `index` has status `status`, `timeout_ns` has passed or the host asks the kernel to end.
 *
 * @param timeout_ns  0: no time bound; the wait ends with the abort flag
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED, also when the item has that status. On a semaphore of
 *         two devices, a wait that succeeds at once sees the abort flag only if `index` is a multiple of 64
 */
WEFTIO_FN_INLINED weftio_s32
weftio_dev_semaphore_wait_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index,
                                 weftio_u32 status, weftio_u64 timeout_ns)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_semaphore_wait_item(semaphore, weftio_dev_semaphore_place_of(semaphore, index), index, status,
                                          timeout_ns);
}

/** Like weftio_dev_semaphore_wait_status; then reads packet info. `count` and `first` change only on WEFTIO_DEV_OK. */
WEFTIO_FN_INLINED weftio_s32
weftio_dev_semaphore_wait_packet_info(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index,
                                      weftio_u32 status, weftio_u64 timeout_ns, weftio_u32 *count, weftio_u32 *first)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);
    weftio_s32 result = weftio_dev_semaphore_wait_item(semaphore, place, index, status, timeout_ns);

    if (result != WEFTIO_DEV_OK)
        return result;
    *count = weftio_load_relaxed_u32(&place.item->count);
    *first = weftio_load_relaxed_u32(&place.item->first);
    return WEFTIO_DEV_OK;
}
