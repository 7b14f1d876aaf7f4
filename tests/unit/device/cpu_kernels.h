// Kernels for the CPU device only: their behavior is undefined on other devices.
#pragma once

#include <pthread.h>
#include <stdexcept>

#include "fixture.hpp"
#include "kernels.h"

namespace weftio::test {

/// Lanes from `keep` on return at once. The others go through barriers and write the block sum and the warp sum of 1.
inline void leave_early(weftio_u32* words, weftio_u32 keep)
{
    if (weftio_lane() >= keep)
        return;
    weftio_block_barrier();
    weftio_warp_barrier();
    weftio_u32 block = weftio_block_sum_u32(1, nullptr);
    words[weftio_lane()] = 1000 * block + weftio_warp_sum_u32(1);
}

/// Lane `late` returns after the others have reached the barrier.
inline void leave_late(weftio_u32* words, weftio_u32 late)
{
    if (weftio_lane() == late) {
        for (weftio_u32 attempt = 0; words[0] < weftio_block_lanes() - 1; ++attempt)
            weftio_relax(attempt);
        return;
    }
    ++words[0];
    weftio_block_barrier();
    ++words[1];
}

/// Lane 0 waits for the last lane, which runs after it.
inline void wait_for_last_lane(weftio_u32* words)
{
    if (weftio_lane() == weftio_block_lanes() - 1)
        weftio_store_release_sys_u32(&words[0], 1);
    for (weftio_u32 attempt = 0; weftio_lane() == 0 && !weftio_load_acquire_sys_u32(&words[0]); ++attempt)
        weftio_relax(attempt);
    weftio_store_release_sys_u32(&words[1 + weftio_lane()], 1);
}

/// Lane `thrower` of block `block` throws while every other lane waits: for the block, or for the host.
inline void throw_in_lane(weftio_dev_control* control, weftio_u32 block, weftio_u32 thrower)
{
    if (weftio_block() == block && weftio_lane() == thrower)
        throw std::runtime_error("a bad day");
    if (weftio_block() == block)
        weftio_block_barrier();
    for (weftio_u32 attempt = 0; !weftio_dev_aborted(control); ++attempt)
        weftio_relax(attempt);
}

/// Block 0 throws. The lanes of the other blocks wait forever, without a check of an abort flag.
inline void throw_or_wait()
{
    if (weftio_block() == 0)
        throw std::runtime_error("no queue");
    for (weftio_u32 attempt = 0;; ++attempt)
        weftio_relax(attempt);
}

/// Throws an object that is no std::exception.
inline void throw_number()
{
    throw 42;
}

/// Decrements the count of lanes in its destructor, however the lane ends.
class present {
 public:
    explicit present(weftio_u32* count) : count_(count) { weftio_fetch_add_u32(count_, 1); }
    present(const present&) = delete;
    present& operator=(const present&) = delete;
    ~present() { weftio_fetch_add_u32(count_, ~0u); }

 private:
    weftio_u32* count_;
};

/// Lanes 3 and 5-9 wait for their warp, lane 12 has returned, all others wait for the block. `words[0]` counts the
/// lanes inside.
inline void disagree(weftio_u32* words)
{
    present inside(words);
    weftio_u32 lane = weftio_lane();

    if (lane == 12)
        return;
    if (lane == 3 || (lane >= 5 && lane <= 9))
        weftio_warp_barrier();
    else
        weftio_block_barrier();
    words[1] = 1;
}

/// Even lanes wait at a barrier, odd ones at a sum.
inline void disagree_on_kind()
{
    if (weftio_lane() % 2 == 0)
        weftio_block_barrier();
    else
        weftio_block_sum_u32(1, nullptr);
}

/// Ignores its abort flag until `words[0]` is set, then writes to its memory.
inline void ignore_abort(weftio_dev_control* control, weftio_u32* words)
{
    weftio_store_release_sys_u32(&control->beats, 1);
    while (!weftio_load_acquire_sys_u32(&words[0]))
        weftio_relax(4096);
    weftio_store_release_sys_u32(&words[1], 1);
}

/// Writes the name of its thread.
inline void write_thread_name(char* name)
{
    pthread_getname_np(pthread_self(), name + 16 * weftio_block(), 16);
}

/// Recurses `depth` times with `bytes` bytes on the stack in each call, and yields at the deepest one. Returns a sum
/// over all these bytes.
inline weftio_u32 dig(weftio_u32 depth)
{
    volatile unsigned char frame[1024];
    for (weftio_u32 at = 0; at < sizeof frame; ++at)
        frame[at] = static_cast<unsigned char>(depth + weftio_lane());
    if (depth > 0)
        return frame[depth] + dig(depth - 1);
    weftio_block_barrier();
    return frame[0];
}
inline void use_stack(weftio_u32* words, weftio_u32 depth)
{
    words[weftio_lane()] = dig(depth);
}

} // namespace weftio::test
