#include "device/cuda/copies.hpp"

#include <fmt/format.h>

#include "core/log.hpp"
#include "weftio/device/platform.h"

namespace weftio::detail::cuda {

copies::copies(std::shared_ptr<cuda_device> owner) : owner_(std::move(owner)), cuda_(owner_->api())
{
    landed_ = owner_->allocate(sizeof(std::uint32_t), alignof(std::uint32_t), memory_kind::cpu_device);
    if (result status = cuda_.cuStreamCreate(&stream_, stream_non_blocking); status != success) {
        owner_->release(landed_, memory_kind::cpu_device);
        cuda_.check(status, "making a stream");
    }
}

copies::~copies()
{
    if (works())
        cuda_.cuStreamSynchronize(stream_);
    cuda_.cuStreamDestroy_v2(stream_);
    owner_->release(landed_, memory_kind::cpu_device);
}

void copies::copy(void* to, const void* from, const rows& rows) noexcept
{
    if (!works())
        return;
    copy_2d wanted{};
    wanted.from_type = memory_type_host;
    wanted.from_host = from;
    wanted.to_type = memory_type_device;
    wanted.to_device = reinterpret_cast<device_pointer>(to);
    wanted.from_pitch = wanted.to_pitch = rows.stride;
    wanted.bytes = rows.bytes;
    wanted.rows = rows.count;
    failed(cuda_.cuMemcpy2DAsync_v2(&wanted, stream_));
}

void copies::mark(std::uint32_t number) noexcept
{
    if (works())
        failed(cuda_.cuStreamWriteValue32_v2(stream_, reinterpret_cast<device_pointer>(landed_.device), number, 0));
}

std::uint32_t copies::landed() const noexcept
{
    // Acquire, pairs with the stream's write of the batch number, which is ordered after the batch's copies.
    return weftio_load_acquire_sys_u32(static_cast<const std::uint32_t*>(landed_.cpu));
}

bool copies::works() noexcept
{
    if (!failed_)
        failed(cuda_.cuCtxSetCurrent(owner_->primary()));
    return !failed_;
}

/// Logs the failure once. No copy lands any more, so packets run out of slots and count as out_of_buffer.
void copies::failed(result status) noexcept
{
    if (status == success || failed_)
        return;
    failed_ = true;
    try {
        log(log_level::error, fmt::format("weftio: {}: copying packets to the GPU failed: {}; its queues get no more "
                                          "packets, restart the process",
                                          owner_->name(), cuda_.words(status)));
    } catch (...) { // an exception of the sink
    }
}

} // namespace weftio::detail::cuda
