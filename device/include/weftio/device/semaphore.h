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

#include "weftio/device/semaphore/any.h"

/** The item of `index`: index % items. Never blocks; divides only if `items` is no power of two. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_slot(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                               weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return 0;
    return weftio_dev_semaphore_any_slot(semaphore, index);
}

/** The index after `index`: index + 1, or 0 if another round does not fit below 2^32. Never blocks. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_next(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                               weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return 0;
    return index + 1 == semaphore->end ? 0 : index + 1;
}

/** Item `index` of a plain semaphore; 0 if it is not plain. */
WEFTIO_FN WEFTIO_GLOBAL struct weftio_dev_semaphore_item *
weftio_dev_semaphore_plain_item(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore, weftio_u32 index)
{
    weftio_u32 mask = weftio_load_constant_u32(&semaphore->mask);

    if (mask == 0xffffffffu)
        return 0;
    return (WEFTIO_GLOBAL struct weftio_dev_semaphore_item *)weftio_load_constant_u64(&semaphore->items) +
           (index & mask);
}

/** Status of an item of a plain semaphore. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_plain_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item)
{
    /*
     * Acquire, pairs with the release in weftio_dev_semaphore_plain_publish: packet info and custom info are visible
     * afterwards.
     */
    return weftio_load_acquire_sys_u32(&item->status);
}

/** Sets the status of an item of a plain semaphore, which passes it to its next owner. */
WEFTIO_FN void weftio_dev_semaphore_plain_publish(WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item,
                                                  weftio_u32 status)
{
    /*
     * Release, pairs with the acquire in weftio_dev_semaphore_plain_status: all that the owner wrote and read comes
     * before.
     */
    weftio_store_release_sys_u32(&item->status, status);
}

/** Status of item `index`. Never blocks. What was written before that status was set may be read afterwards. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_get_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                     weftio_u32 index)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_SEMAPHORE_ERROR;
    const WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item = weftio_dev_semaphore_plain_item(semaphore, index);

    return item ? weftio_dev_semaphore_plain_status(item) : weftio_dev_semaphore_any_get_status(semaphore, index);
}

/**
 * Sets the status of item `index`, which passes the item to its next owner. Never blocks.
 *
 * @pre the caller owns the item
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT transitions are checked and this one is illegal: the item is
 *         unchanged, and the host class reports it
 */
WEFTIO_FN weftio_s32 weftio_dev_semaphore_set_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                     weftio_u32 index, weftio_u32 status)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item = weftio_dev_semaphore_plain_item(semaphore, index);

    if (!item)
        return weftio_dev_semaphore_any_set_status(semaphore, index, status);
    weftio_dev_semaphore_plain_publish(item, status);
    return WEFTIO_DEV_OK;
}

/** Writes packet info, then sets the status of the item: as weftio_dev_semaphore_set_status. */
WEFTIO_FN weftio_s32 weftio_dev_semaphore_set_packet_info(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                          weftio_u32 index, weftio_u32 status, weftio_u32 count,
                                                          weftio_u32 first)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item = weftio_dev_semaphore_plain_item(semaphore, index);

    if (!item)
        return weftio_dev_semaphore_any_set_packet_info(semaphore, index, status, count, first);
    weftio_dev_semaphore_store_info(item, count, first);
    weftio_dev_semaphore_plain_publish(item, status);
    return WEFTIO_DEV_OK;
}

/** Packet info of item `index`, which the caller has seen with a status of its own. */
WEFTIO_FN void weftio_dev_semaphore_load_info(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                              weftio_u32 index, weftio_u32 *count, weftio_u32 *first)
{
    const WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item = weftio_dev_semaphore_plain_item(semaphore, index);

    if (!item)
        item = weftio_dev_semaphore_place_of(semaphore, index).item;
    *count = weftio_load_relaxed_u32(&item->count);
    *first = weftio_load_relaxed_u32(&item->first);
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
    if (weftio_dev_semaphore_get_status(semaphore, index) != status)
        return WEFTIO_DEV_NOT_FOUND;
    weftio_dev_semaphore_load_info(semaphore, index, count, first);
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

/**
 * Waits until item `index` has status `status`, `timeout_ns` has passed or the host asks the kernel to end.
 *
 * @param timeout_ns  0: no time bound; the wait ends with the abort flag
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED, also when the item has that status. On a semaphore of
 *         two devices, a wait that succeeds at once sees the abort flag only if `index` is a multiple of 64
 */
WEFTIO_FN weftio_s32 weftio_dev_semaphore_wait_status(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                      weftio_u32 index, weftio_u32 status, weftio_u64 timeout_ns)
{
    if (!weftio_dev_is_handle(semaphore->abi, WEFTIO_DEV_ABI_SEMAPHORE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const WEFTIO_GLOBAL struct weftio_dev_semaphore_item *item = weftio_dev_semaphore_plain_item(semaphore, index);

    if (item && index % WEFTIO_DEV_SEMAPHORE_BEAT_ITEMS && weftio_dev_semaphore_plain_status(item) == status &&
        !weftio_dev_aborted(semaphore->control))
        return WEFTIO_DEV_OK;
    return weftio_dev_semaphore_any_wait_status(semaphore, index, status, timeout_ns);
}

/** Like weftio_dev_semaphore_wait_status; then reads packet info. `count` and `first` change only on WEFTIO_DEV_OK. */
WEFTIO_FN weftio_s32 weftio_dev_semaphore_wait_packet_info(const WEFTIO_GLOBAL struct weftio_dev_semaphore *semaphore,
                                                           weftio_u32 index, weftio_u32 status, weftio_u64 timeout_ns,
                                                           weftio_u32 *count, weftio_u32 *first)
{
    weftio_s32 result = weftio_dev_semaphore_wait_status(semaphore, index, status, timeout_ns);

    if (result != WEFTIO_DEV_OK)
        return result;
    weftio_dev_semaphore_load_info(semaphore, index, count, first);
    return WEFTIO_DEV_OK;
}
