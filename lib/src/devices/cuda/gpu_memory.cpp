#include "weftio/gpu_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "devices/backend.hpp"
#include "devices/cuda/addresses.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

namespace cuda = devices::cuda;

/// Returns nullptr if it is no GPU of CUDA.
cuda::cuda_device* gpu_of(const device& which)
{
    return dynamic_cast<cuda::cuda_device*>(&detail::internals::backend(which));
}

int attribute(const cuda::cuda_device& gpu, cuda::device_attribute which)
{
    int value = 0;
    gpu.api().check(gpu.api().cuDeviceGetAttribute(&value, which, gpu.cuda_number()),
                    "asking what is promised of writes of NICs");
    return value;
}

/// A driver may have more steps than we know.
writes_ordering ordering_from(int told)
{
    return told >= static_cast<int>(writes_ordering::all_devices) ? writes_ordering::all_devices
           : told >= static_cast<int>(writes_ordering::owner)     ? writes_ordering::owner
                                                                  : writes_ordering::none;
}

memory_info::made_by maker_of(const cuda::address_info& seen)
{
    using made_by = memory_info::made_by;
    if (seen.managed)
        return made_by::managed;
    if (seen.is_of_host())
        return made_by::host_alloc;
    switch (seen.made_by) {
        case cuda::maker::mem_alloc: return made_by::mem_alloc;
        case cuda::maker::mem_map: return made_by::mem_map;
        case cuda::maker::pool: return made_by::pool;
        case cuda::maker::unknown: break;
    }
    return made_by::unknown;
}

/// Why the driver exports no dma-buf of the memory's whole pages; empty: it does. @pre a context is current
std::string no_dma_buf(const cuda::cuda_device& gpu, const memory_info& of)
{
    constexpr std::uintptr_t page = 4096;
    const std::uintptr_t begin = (of.begin + page - 1) / page * page, end = (of.begin + of.bytes) / page * page;
    if (begin >= end)
        return fmt::format("its {} bytes at {:#x} hold no whole page of 4096 bytes", of.bytes, of.begin);
    int descriptor = -1;
    const cuda::result status =
        gpu.api().cuMemGetHandleForAddressRange(&descriptor, begin, end - begin, cuda::dma_buf_handle, 0);
    if (status != cuda::success)
        return fmt::format("the driver exports none of this memory: {}", gpu.api().words(status));
    close(descriptor);
    return {};
}

bool copies_are_synchronous(const cuda::cuda_device& gpu, std::uintptr_t address)
{
    unsigned of_memory = 0, of_context = 0;
    if (cuda::ask(gpu, of_memory, cuda::sync_memops, address) == cuda::success && of_memory != 0)
        return true;
    return gpu.api().cuCtxGetFlags(&of_context) == cuda::success && (of_context & cuda::context_sync_memops) != 0;
}

} // namespace

const char* to_string(writes_ordering ordering) noexcept
{
    switch (ordering) {
        case writes_ordering::none: return "none";
        case writes_ordering::owner: return "owner";
        case writes_ordering::all_devices: return "all_devices";
    }
    return "unknown";
}

const char* to_string(memory_info::made_by maker) noexcept
{
    switch (maker) {
        case memory_info::made_by::system: return "system";
        case memory_info::made_by::host_alloc: return "host_alloc";
        case memory_info::made_by::mem_alloc: return "mem_alloc";
        case memory_info::made_by::mem_map: return "mem_map";
        case memory_info::made_by::pool: return "pool";
        case memory_info::made_by::managed: return "managed";
        case memory_info::made_by::unknown: break;
    }
    return "unknown";
}

memory_ordering ordering_of(const device& of)
{
    const cuda::cuda_device* const gpu = gpu_of(of);
    if (!gpu)
        return {};
    return {.remote_writes = ordering_from(attribute(*gpu, cuda::remote_writes_ordering)),
            .flushed_by_host = (attribute(*gpu, cuda::flush_writes_options) & cuda::flush_option_host) != 0,
            .flushed_by_stream = attribute(*gpu, cuda::can_flush_remote_writes) != 0};
}

void flush_writes(const device& target, writes_ordering for_whom)
{
    if (for_whom != writes_ordering::owner && for_whom != writes_ordering::all_devices)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: flush_writes: {} is no one to flush for; say writes_ordering::owner or "
                                "all_devices",
                                static_cast<int>(for_whom)));
    const memory_ordering promised = ordering_of(target);
    if (promised.remote_writes >= for_whom)
        return;
    const cuda::cuda_device& gpu = *gpu_of(target);
    if (!promised.flushed_by_host)
        throw error(
            errc::not_supported,
            fmt::format("weftio: flush_writes: the driver of {} has no flush for the host, and orders writes of "
                        "NICs for {}, not for {}; read a byte back by RDMA on the queue pair that wrote, before "
                        "the memory is used",
                        target.name(), to_string(promised.remote_writes), to_string(for_whom)));
    const cuda::current_context now = gpu.use();
    gpu.api().check(
        gpu.api().cuFlushGPUDirectRDMAWrites(cuda::flush_target_current_context, static_cast<int>(for_whom)),
        "flushing writes of NICs");
}

void wait_and_flush(const device& target, void* stream, const std::uint32_t* word, std::uint32_t value)
{
    if (reinterpret_cast<std::uintptr_t>(word) % sizeof *word != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: wait_and_flush: the word at {} is not at a multiple of 4",
                                static_cast<const void*>(word)));
    if (!ordering_of(target).flushed_by_stream)
        throw error(
            errc::not_supported,
            fmt::format("weftio: wait_and_flush: streams of {} flush no writes of NICs; wait for the word on the "
                        "host and call flush_writes()",
                        target.name()));
    const cuda::cuda_device& gpu = *gpu_of(target);
    const cuda::current_context now = gpu.use();
    gpu.api().check(gpu.api().cuStreamWaitValue32_v2(static_cast<cuda::stream>(stream),
                                                     reinterpret_cast<std::uintptr_t>(word), value,
                                                     cuda::wait_value_at_least | cuda::wait_value_flush),
                    "having a stream wait for a word");
}

memory_info memory_info::of(const weftio::device& gpu, const void* address)
{
    const cuda::cuda_device* const asked = gpu_of(gpu);
    if (!asked)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: memory_info: device {} is no GPU of CUDA, whose driver could tell", gpu.name()));
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    memory_info info;
    info.why_no_dma_buf = info.why_no_tokens = "it is no memory of a GPU";
    const cuda::current_context now = asked->use();
    const std::optional<cuda::address_info> seen = cuda::look_up(*asked, at);
    if (!seen)
        return info;
    info.maker = maker_of(*seen);
    info.device = fmt::format("cuda:{}", seen->gpu);
    info.begin = seen->begin;
    info.bytes = seen->bytes;
    info.buffer_id = seen->buffer;
    info.block_id = seen->block;
    info.cpu_can_access = seen->managed || seen->is_of_host();
    if (info.cpu_can_access)
        return info;
    info.synchronous_copies = copies_are_synchronous(*asked, at);
    info.why_no_dma_buf = no_dma_buf(*asked, info);
    info.dma_buf = info.why_no_dma_buf.empty();
    cuda::tokens given{};
    const cuda::result status = cuda::ask(*asked, given, cuda::peer_to_peer_tokens, at);
    if (status == cuda::success)
        info.tokens = {.p2p = given.peer_to_peer, .address_space = given.address_space};
    info.why_no_tokens =
        info.tokens ? "" : fmt::format("the driver gives none of this memory: {}", asked->api().words(status));
    return info;
}

} // namespace weftio
