#include "devices/cuda/copies.hpp"

#include <fmt/format.h>

#include <bit>

#include "core/log.hpp"
#include "weftio/device/platform.h"

namespace weftio::devices::cuda {

namespace {

device_pointer address(const void* pointer) noexcept
{
    return reinterpret_cast<device_pointer>(pointer);
}

} // namespace

copies::copies(std::shared_ptr<cuda_device> owner) : owner_(std::move(owner)), cuda_(owner_->api())
{
    completed_ = owner_->allocate(sizeof(std::uint32_t), alignof(std::uint32_t), memory_kind::cpu_device);
    if (result status = cuda_.cuStreamCreate(&stream_, stream_non_blocking); status != success) {
        owner_->release(completed_, memory_kind::cpu_device);
        cuda_.check(status, "making a stream");
    }
}

copies::~copies()
{
    const current_context now(cuda_, owner_->primary(), std::nothrow);
    if (now.status() == success && !failed()) // else the GPU has failed, or the driver has ended with the process
        cuda_.cuStreamSynchronize(stream_);
    cuda_.cuStreamDestroy_v2(stream_);
    owner_->release(completed_, memory_kind::cpu_device);
}

void copies::copy(void* to, const void* from, const rows& rows) noexcept
{
    const current_context now(cuda_, owner_->primary(), std::nothrow);
    if (!works(now))
        return;
    if (rows.count == 1) {
        note_status(cuda_.cuMemcpyAsync(address(to), address(from), rows.bytes, stream_));
        return;
    }
    copy_2d wanted{};
    wanted.from_type = wanted.to_type = memory_type_unified;
    wanted.from_device = address(from);
    wanted.to_device = address(to);
    wanted.from_pitch = rows.from_stride;
    wanted.to_pitch = rows.to_stride;
    wanted.bytes = rows.bytes;
    wanted.rows = rows.count;
    note_status(cuda_.cuMemcpy2DAsync_v2(&wanted, stream_));
}

/// The direction is said, so that the driver does not take the address of freed memory for one of the host.
bool copies::try_copy(void* to, const void* from, std::size_t bytes, direction which) noexcept
{
    const current_context now(cuda_, owner_->primary(), std::nothrow);
    if (!works(now))
        return false;
    const result status = which == direction::to_device ? cuda_.cuMemcpyHtoDAsync_v2(address(to), from, bytes, stream_)
                                                        : cuda_.cuMemcpyDtoHAsync_v2(to, address(from), bytes, stream_);
    if (status != invalid_value)
        note_status(status);
    return status == success;
}

/// Whole words lie at addresses that are multiples of four; up to three bytes in front of them and behind them are
/// written one by one.
void copies::fill(void* to, std::uint32_t pattern, std::size_t bytes) noexcept
{
    const current_context now(cuda_, owner_->primary(), std::nothrow);
    if (!works(now))
        return;
    device_pointer at = address(to);
    auto next_byte = [&] {
        note_status(cuda_.cuMemsetD8Async(at++, static_cast<unsigned char>(pattern), 1, stream_));
        pattern = std::rotr(pattern, 8);
        --bytes;
    };
    while (bytes != 0 && at % 4 != 0)
        next_byte();
    if (const std::size_t words = bytes / 4; words != 0) {
        note_status(cuda_.cuMemsetD32Async(at, pattern, words, stream_));
        at += words * 4;
        bytes %= 4;
    }
    while (bytes != 0)
        next_byte();
}

void copies::mark(std::uint32_t number) noexcept
{
    const current_context now(cuda_, owner_->primary(), std::nothrow);
    if (works(now))
        note_status(
            cuda_.cuStreamWriteValue32_v2(stream_, reinterpret_cast<device_pointer>(completed_.device), number, 0));
}

std::uint32_t copies::completed() const noexcept
{
    // Acquire, pairs with the stream's write of the batch number, which is ordered after the batch's copies.
    return weftio_load_acquire_sys_u32(static_cast<const std::uint32_t*>(completed_.cpu));
}

bool copies::works(const current_context& now) noexcept
{
    note_status(now.status());
    return !failed_;
}

/// Logs the first failure. No copy completes any more: packets run out of slots and count as out_of_buffer, and entries
/// of DMA queues fail.
void copies::note_status(result status) noexcept
{
    if (status == success || failed_)
        return;
    failed_ = true;
    try {
        core::log(log_level::error,
                  fmt::format("weftio: {}: copying to or from the GPU failed: {}; receive queues with slots on it get "
                              "no more packets, send and DMA queues that use its memory fail; restart the process",
                              owner_->name(), cuda_.words(status)));
    } catch (...) { // an exception of the sink
    }
}

} // namespace weftio::devices::cuda
