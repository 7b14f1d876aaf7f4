// What the stand-in tells of addresses; memory of pools and mappings.
#include "cuda_state.hpp"

using namespace stand_in;

extern "C" {

int cuMemAlloc_v2(device_pointer*, std::size_t);

int cuPointerGetAttribute(void* to, int attribute, device_pointer address)
{
    ++attributes_asked;
    const std::lock_guard lock(mutex);
    auto behind = ranges.upper_bound(address);
    if (behind == ranges.begin() || address - std::prev(behind)->first >= std::prev(behind)->second.bytes)
        return invalid_value;
    const auto& [first, found] = *std::prev(behind);
    const mapping* const there = found.reserved ? mapping_of(address) : nullptr;
    if (attribute >= 18 && attribute <= 20 && !there)
        return invalid_value;
    switch (attribute) {
        case 1: return put(to, found.reserved || found.pooled ? nullptr : static_cast<void*>(found.of)); // context
        case 2: return put(to, found.of ? 2U : 1U); // type of memory: of a device, of the host
        case 3:
        case 4: return put(to, address); // as device and host see it
        case 5: return not_supported;    // tokens
        case 6: return put(to, found.ordered ? 1U : 0U);
        case 7: return ++ids_asked, put(to, found.id);
        case 8: return put(to, found.managed ? 1U : 0U);
        case 9: return put(to, found.of ? found.of->number : 0);
        case 10: return put(to, found.of && !found.managed && !found.reserved && !found.pooled ? 1U : 0U);
        case 11: return put(to, static_cast<device_pointer>(first));
        case 12: return put(to, found.bytes);
        case 13: return put(to, !found.reserved || there ? 1U : 0U);
        case 17: return put(to, found.pooled ? static_cast<void*>(gpus) : nullptr);
        case 18: return put(to, there->bytes);
        case 19: return put(to, static_cast<device_pointer>(std::prev(mappings.upper_bound(address))->first));
        case 20: return put(to, there->block->id);
        default: return invalid_value;
    }
}
int cuMemAllocAsync(device_pointer* made, std::size_t bytes, stream*)
{
    const int status = cuMemAlloc_v2(made, bytes);
    const std::lock_guard lock(mutex);
    if (status == success)
        ranges[*made].pooled = true;
    return status;
}
int cuPointerSetAttribute(const void* value, int attribute, device_pointer address)
{
    constexpr int sync_memops = 6;
    const std::lock_guard lock(mutex);
    const auto behind = ranges.upper_bound(address);
    if (attribute != sync_memops || behind == ranges.begin())
        return invalid_value;
    range& found = std::prev(behind)->second;
    if (found.reserved || found.pooled)
        return not_supported;
    found.ordered = *static_cast<const unsigned*>(value) != 0;
    return success;
}

} // extern "C"
