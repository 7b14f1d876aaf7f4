// Kernels that only the CPU device can run: they do what other devices leave undefined.
#pragma once

#include <pthread.h>
#include <stdexcept>

#include "fixture.hpp"
#include "kernels.h"

namespace weftio::test {

/// Lanes from `keep` on leave at once; the others go through barriers and write what a block sum and a warp sum of 1
/// give.
inline void leave_early(weftio_u32* words, weftio_u32 keep)
{
    if (weftio_lane() >= keep)
        return;
    weftio_block_barrier();
    weftio_warp_barrier();
    weftio_u32 block = weftio_block_sum_u32(1, nullptr);
    words[weftio_lane()] = 1000 * block + weftio_warp_sum_u32(1);
}

/// Lane `late` leaves when the others have come to the barrier.
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

/// Block 0 throws; the lanes of the others would wait for ever, for nothing that the host can reach.
inline void throw_or_wait()
{
    if (weftio_block() == 0)
        throw std::runtime_error("no queue");
    for (weftio_u32 attempt = 0;; ++attempt)
        weftio_relax(attempt);
}

/// Throws something that is no exception.
inline void throw_number()
{
    throw 42;
}

/// Counts its lanes down again however they end.
class present {
 public:
    explicit present(weftio_u32* count) : count_(count) { weftio_fetch_add_u32(count_, 1); }
    present(const present&) = delete;
    present& operator=(const present&) = delete;
    ~present() { weftio_fetch_add_u32(count_, ~0u); }

 private:
    weftio_u32* count_;
};

/// Lanes 3 and 5-9 wait for their warp, lane 12 has left, all others wait for the block. `words[0]` counts who is
/// inside.
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

/// Puts `bytes` on its stack at every of `depth` calls and yields at the bottom; returns a sum over all of it.
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
