/**
 * Semaphores of any kind: with any number of items, of one or two devices, with transitions that are checked or not.
 * Included by semaphore.h, whose functions come here if a semaphore is not plain, and to wait.
 */
#pragma once

#include "weftio/device/semaphore/layout.h"

/** The item of `index`: index % items. Divides only if `items` is no power of two. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_any_slot(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                   weftio_u32 index)
{
    weftio_u32 count = weftio_load_constant_u32(&semaphore->count);

    if ((count & (count - 1)) == 0)
        return index & (count - 1);
    return index < count ? index : index % count;
}

/** An item, and its copy in the memory of the other device: 0 if the semaphore has one device. */
struct weftio_dev_semaphore_place {
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *peer;
};

/** Where item `index` lies. */
WEFTIO_FN struct weftio_dev_semaphore_place
weftio_dev_semaphore_place_of(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index)
{
    weftio_u64 items = weftio_load_constant_u64(&semaphore->items);
    weftio_u64 peers = weftio_load_constant_u64(&semaphore->peer_items);
    weftio_u32 slot = weftio_dev_semaphore_any_slot(semaphore, index);
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
WEFTIO_FN weftio_u32 weftio_dev_semaphore_status_at(struct weftio_dev_semaphore_place place)
{
    weftio_u32 own = place.peer ? weftio_load_relaxed_u32(&place.item->own) : 0; /* first: nothing waits for it */
    /*
     * Acquire, pairs with the release in weftio_dev_semaphore_publish_at: packet info and custom info are visible
     * afterwards.
     */
    weftio_u32 seen = weftio_load_acquire_sys_u32(&place.item->status);

    return place.peer ? weftio_dev_semaphore_newer(seen, own) & WEFTIO_DEV_SEMAPHORE_STATUS_BITS : seen;
}

/** Sets the status of an item, which passes it to its next owner. */
WEFTIO_FN void weftio_dev_semaphore_publish_at(struct weftio_dev_semaphore_place place, weftio_u32 status)
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
     * Release, pairs with the acquire in weftio_dev_semaphore_status_at: all that the owner wrote and read comes
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
WEFTIO_FN weftio_u32 weftio_dev_semaphore_refuses(WEFTIO_GLOBAL struct weftio_dev_semaphore_illegal *illegal,
                                                  struct weftio_dev_semaphore_place place, weftio_u32 index,
                                                  weftio_u32 to)
{
    if (!illegal)
        return 0;
    weftio_u32 from = weftio_dev_semaphore_status_at(place);

    if (weftio_dev_semaphore_is_legal(from, to))
        return 0;
    weftio_dev_semaphore_record(illegal, index, from, to);
    return 1;
}

/** weftio_dev_semaphore_set_status for any semaphore. */
WEFTIO_FN_APART weftio_s32 weftio_dev_semaphore_any_set_status(
    const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index, weftio_u32 status)
{
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);

    if (weftio_dev_semaphore_refuses(semaphore->illegal, place, index, status))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_semaphore_publish_at(place, status);
    return WEFTIO_DEV_OK;
}

/** Writes packet info to one copy of an item. */
WEFTIO_FN void weftio_dev_semaphore_store_info(WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item, weftio_u32 count,
                                               weftio_u32 first)
{
    weftio_store_relaxed_u32(&item->count, count);
    weftio_store_relaxed_u32(&item->first, first);
}

/** weftio_dev_semaphore_set_packet_info for any semaphore. */
WEFTIO_FN_APART weftio_s32
weftio_dev_semaphore_any_set_packet_info(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index,
                                         weftio_u32 status, weftio_u32 count, weftio_u32 first)
{
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);

    if (weftio_dev_semaphore_refuses(semaphore->illegal, place, index, status))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_semaphore_store_info(place.item, count, first);
    if (place.peer)
        weftio_dev_semaphore_store_info(place.peer, count, first);
    weftio_dev_semaphore_publish_at(place, status);
    return WEFTIO_DEV_OK;
}

/** weftio_dev_semaphore_get_status for any semaphore. */
WEFTIO_FN_APART weftio_u32
weftio_dev_semaphore_any_get_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index)
{
    return weftio_dev_semaphore_status_at(weftio_dev_semaphore_place_of(semaphore, index));
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

/** weftio_dev_semaphore_wait_status for any semaphore. */
WEFTIO_FN_APART weftio_s32
weftio_dev_semaphore_any_wait_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index,
                                     weftio_u32 status, weftio_u64 timeout_ns)
{
    struct weftio_dev_semaphore_place place = weftio_dev_semaphore_place_of(semaphore, index);
    WEFTIO_GLOBAL struct weftio_dev_control *control =
        (WEFTIO_GLOBAL struct weftio_dev_control *)weftio_load_constant_u64(&semaphore->control);
    weftio_u64 deadline_ns = 0;

    for (weftio_u32 attempt = 0;; ++attempt) {
        const weftio_u32 looks = weftio_dev_semaphore_looks(place, index, attempt);
        weftio_s32 result = WEFTIO_DEV_OK;

        if (looks && weftio_dev_aborted(control))
            result = WEFTIO_DEV_ABORTED;
        else if (weftio_dev_semaphore_status_at(place) != status)
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
