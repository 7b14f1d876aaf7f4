#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "devices/backend.hpp"
#include "weftio/error.hpp"

// What devices do that do nothing of their own.
namespace weftio::devices {

void device_backend::reach(const device_backend& other, memory_kind, std::string_view who)
{
    if (!shares_memory_with(other))
        throw error(errc::not_reachable,
                    fmt::format("weftio: {}: kernels of device {} cannot access memory of {} {}; use two GPUs, two CPU "
                                "devices, or one device",
                                who, name(), name() == other.name() ? "another" : "device", other.name()));
}

std::pair<device_backend::allocation, memory_kind> device_backend::adopt(void* address, std::size_t)
{
    throw error(errc::not_supported, fmt::format("weftio: device {}: memory at {} cannot be adopted: its kernels "
                                                 "access its own memory only; use device::allocate",
                                                 name(), address));
}

void device_backend::upload(const allocation& to, const void* from, std::size_t bytes)
{
    std::memcpy(to.device, from, bytes);
}

bool device_backend::can_read(const void* address) const noexcept
{
    // The kernel reads a set of signals before it looks at the command, which does not exist.
    constexpr std::uintptr_t set_bytes = 8;
    const std::uintptr_t set = reinterpret_cast<std::uintptr_t>(address) & ~(set_bytes - 1);
    constexpr int no_command = -1;
    return ::syscall(SYS_rt_sigprocmask, no_command, set, nullptr, set_bytes) == 0 || errno != EFAULT;
}

void device_backend::download(void* to, const void* from, std::size_t bytes)
{
    std::memcpy(to, from, bytes);
}

std::shared_ptr<copy_queue> device_backend::make_copy_queue(std::shared_ptr<device_backend>)
{
    throw error(errc::not_supported,
                fmt::format("weftio: device {}: no copy engine, which the NIC needs for memory of other kinds than "
                            "cpu_device; use memory_kind::cpu_device, which its kernels can read",
                            name()));
}

int device_backend::export_dma_buf(const allocation&, std::size_t)
{
    throw error(
        errc::not_supported,
        fmt::format("weftio: device {}: its memory cannot be exported as a dma-buf; only GPU memory can", name()));
}

std::uint64_t device_backend::buffer_id(const allocation&)
{
    throw error(errc::not_supported,
                fmt::format("weftio: device {}: its memory has no buffer ids; only GPU memory has", name()));
}

} // namespace weftio::devices
