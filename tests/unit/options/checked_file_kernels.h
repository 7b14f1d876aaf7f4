/* A kernel with WEFTIO_DEV_CHECKS, which checks its file queue. */
#pragma once

#define WEFTIO_DEV_CHECKS

#include "weftio/device/file.h"

/* A handle in memory, where device::launch cannot check it, and other memory. */
struct file_handle {
    WEFTIO_GLOBAL struct weftio_dev_file_queue* files;
    WEFTIO_GLOBAL struct weftio_dev_buf_arr* array;
    weftio_u32 key;
};

#define FILE_STATUSES 11
#define FILE_ANSWERS (FILE_STATUSES + 2)

/* answers[]: the statuses of functions, whether the host asks the kernel to end, and whether the mask is not 0. */
WEFTIO_KERNEL void tries_file_handle(WEFTIO_GLOBAL struct file_handle* given, WEFTIO_GLOBAL weftio_u32* answers)
{
    WEFTIO_GLOBAL struct weftio_dev_file_queue* files = given->files;
    struct weftio_dev_buf buf = weftio_dev_buf_get(given->array, 0);
    weftio_u32 position = 7, mask = 7;
    weftio_u64 time;
    weftio_s64 bytes;

    answers[0] = (weftio_u32)weftio_dev_file_read(files, given->key, 0, buf, 0, 4, WEFTIO_DEV_SEND_NONE);
    answers[1] = (weftio_u32)weftio_dev_file_write(files, given->key, 0, buf, 0, 4, WEFTIO_DEV_FILE_FENCE);
    answers[2] = (weftio_u32)weftio_dev_file_sync(files, given->key, WEFTIO_DEV_SEND_NONE);
    answers[3] = (weftio_u32)weftio_dev_file_commit_wait(files, 0);
    answers[4] = (weftio_u32)weftio_dev_file_status(files);
    answers[5] = (weftio_u32)weftio_dev_file_commit_weak(files, 0);
    answers[6] = (weftio_u32)weftio_dev_file_poll_completion(files, 0, &time);
    answers[7] = (weftio_u32)weftio_dev_file_wait_room(files, 1, 1);
    answers[8] = (weftio_u32)weftio_dev_file_result(files, 1, &bytes);
    answers[9] = (weftio_u32)weftio_dev_file_wait_result(files, 2, 1, &bytes);
    answers[10] = (weftio_u32)weftio_dev_file_commit(files);
    answers[11] = weftio_dev_file_aborted(files);
    weftio_dev_file_get_info(files, &position, &mask);
    answers[12] = mask != 0;
}
