#include "devices/cuda/addresses.hpp"

namespace weftio::devices::cuda {

namespace {

/// Returns false if the driver does not know the address.
template <class T>
bool knows(const cuda_device& gpu, T& value, pointer_attribute attribute, std::uintptr_t address)
{
    constexpr result invalid_value = 1;
    const result status = ask(gpu, value, attribute, address);
    if (status != invalid_value)
        gpu.api().check(status, "asking what memory an address is");
    return status == success;
}

/// The driver's range and buffer ID of such memory are those of reserved addresses. Returns false if nothing is mapped.
bool see_mapping(const cuda_device& gpu, address_info& seen, std::uintptr_t address)
{
    unsigned mapped = 0;
    void* pool = nullptr;
    if (!knows(gpu, mapped, is_mapped, address) || mapped == 0)
        return false;
    seen.made_by = maker::unknown;
    if (ask(gpu, pool, memory_pool, address) == success && pool) {
        seen.made_by = maker::pool;
    } else if (const std::optional<mapping> there = mapping_at(gpu, address)) {
        seen.made_by = maker::mem_map;
        seen.begin = there->begin;
        seen.bytes = there->bytes;
        seen.block = there->block;
    }
    return true;
}

} // namespace

std::optional<mapping> mapping_at(const cuda_device& gpu, std::uintptr_t address) noexcept
{
    unsigned long long block = 0;
    device_pointer begin = 0;
    std::size_t bytes = 0;
    if (ask(gpu, block, memory_block, address) != success || ask(gpu, begin, mapping_begin, address) != success ||
        ask(gpu, bytes, mapping_bytes, address) != success || block == 0)
        return std::nullopt;
    return mapping{begin, bytes, block};
}

std::optional<address_info> look_up(const cuda_device& gpu, std::uintptr_t address)
{
    address_info seen;
    unsigned managed = 0, of_mem_alloc = 1;
    device_pointer begin = 0;
    unsigned long long buffer = 0;
    if (!knows(gpu, buffer, buffer_id, address) || !knows(gpu, seen.type, memory_type, address) ||
        !knows(gpu, managed, is_managed, address) || !knows(gpu, seen.gpu, device_ordinal, address) ||
        !knows(gpu, begin, range_begin, address) || !knows(gpu, seen.bytes, range_bytes, address))
        return std::nullopt;
    seen.managed = managed != 0;
    seen.begin = begin;
    seen.buffer = buffer;
    if (!seen.managed && !seen.is_of_host() && ask(gpu, of_mem_alloc, is_of_mem_alloc, address) == success &&
        of_mem_alloc == 0 && !see_mapping(gpu, seen, address))
        return std::nullopt;
    return seen;
}

} // namespace weftio::devices::cuda
