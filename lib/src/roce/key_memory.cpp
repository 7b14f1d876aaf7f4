#include "roce/key_memory.hpp"

#include <cstring>

#include "core/guarded.hpp"
#include "weftio/device/platform.h"

namespace weftio::roce {

namespace {

/// A number on a multiple of its size changes at once: who waits for it sees what was written before. Returns false
/// when the memory is not there.
bool place(std::byte* at, std::span<const std::uint8_t> bytes) noexcept
{
    std::uint64_t number = 0;
    if (bytes.size() != sizeof number || reinterpret_cast<std::uintptr_t>(at) % sizeof number != 0)
        return core::guarded_copy(at, bytes.data(), bytes.size());
    std::memcpy(&number, bytes.data(), sizeof number);
    return core::guarded([&](core::touched& there) {
        there.only(at, sizeof number);
        // Release, pairs with the acquire in weftio_dev_rdma_wait_value.
        weftio_store_release_sys_u64(reinterpret_cast<weftio_u64*>(at), number);
    });
}

} // namespace

/// In the order of what the reason tells: a key of another domain says nothing of its rights, nor of its range.
key_refusal key_memory::find(const remote_range& range, access needed, std::byte*& at) const noexcept
{
    const keys::key_entry* const region = keys_.find(range.key);
    if (region == nullptr)
        return key_refusal::unknown_key;
    if (region->domain != domain_)
        return key_refusal::other_domain;
    if ((region->rights & needed) != needed)
        return key_refusal::no_right;
    if (!region->holds(range.address, range.bytes))
        return key_refusal::outside_region;
    if (region->cpu == nullptr)
        return key_refusal::out_of_reach;
    at = region->at(range.address, range.bytes);
    return key_refusal::none;
}

key_refusal key_memory::check(const remote_range& range, access needed)
{
    std::byte* at = nullptr;
    return find(range, needed, at);
}

key_refusal key_memory::write(const remote_range& range, std::span<const std::uint8_t> bytes)
{
    std::byte* at = nullptr;
    const key_refusal why = find(range, access::remote_write, at);
    if (why == key_refusal::none && !place(at, bytes))
        return key_refusal::memory_gone;
    return why;
}

key_refusal key_memory::read(const remote_range& range, std::span<const std::uint8_t>& bytes)
{
    std::byte* at = nullptr;
    const key_refusal why = find(range, access::remote_read, at);
    if (why == key_refusal::none)
        bytes = {reinterpret_cast<const std::uint8_t*>(at), range.bytes};
    return why;
}

key_refusal key_memory::word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word)
{
    std::byte* at = nullptr;
    if (const key_refusal why = find({key, address, sizeof *word}, access::remote_atomic, at); why != key_refusal::none)
        return why;
    if (reinterpret_cast<std::uintptr_t>(at) % sizeof *word != 0)
        return key_refusal::out_of_reach;
    word = reinterpret_cast<std::uint64_t*>(at);
    return key_refusal::none;
}

key_refusal key_memory::invalidate(std::uint32_t key)
{
    return keys_.find(key) == nullptr ? key_refusal::unknown_key : key_refusal::no_right;
}

} // namespace weftio::roce
