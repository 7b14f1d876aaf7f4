#include "roce/key_memory.hpp"

#include <cstring>

#include "core/guarded.hpp"
#include "weftio/device/platform.h"

namespace weftio::roce {

namespace {

/// Copies the bytes. Eight bytes to an aligned address are one release store: a kernel that waits for this value sees
/// all earlier writes, too. Returns false when the memory is gone.
bool store(std::byte* at, std::span<const std::uint8_t> bytes) noexcept
{
    std::uint64_t number = 0;
    if (bytes.size() != sizeof number || reinterpret_cast<std::uintptr_t>(at) % sizeof number != 0)
        return core::guarded_copy(at, bytes.data(), bytes.size());
    return core::guarded([&](core::touched& there) {
        there.only(at, sizeof number, bytes.data(), sizeof number);
        std::memcpy(&number, bytes.data(), sizeof number);
        // Release, pairs with the acquire in weftio_dev_rdma_wait_value.
        weftio_store_release_sys_u64(reinterpret_cast<weftio_u64*>(at), number);
    });
}

} // namespace

refusal key_memory::find(const remote_range& range, access needed, std::byte*& at) const noexcept
{
    return keys::resolve_for_cpu(nic_, {range.key, range.address, range.bytes, needed, for_.domain, for_.number}, at);
}

/// For memory that find() has refused as out_of_reach.
[[gnu::cold]] refusal key_memory::find_staged(const remote_range& range, access needed,
                                              keys::located& found) const noexcept
{
    if (staged_ == nullptr)
        return refusal::out_of_reach;
    const refusal why =
        keys::resolve(nic_, {range.key, range.address, range.bytes, needed, for_.domain, for_.number}, found);
    return why != refusal::none || staged_->reaches(found) ? why : refusal::out_of_reach;
}

bool key_memory::is_staged(const remote_range& range, access needed) const noexcept
{
    std::byte* at = nullptr;
    keys::located found;
    return find(range, needed, at) == refusal::out_of_reach && find_staged(range, needed, found) == refusal::none;
}

refusal key_memory::check(const remote_range& range, access needed)
{
    std::byte* at = nullptr;
    const refusal why = find(range, needed, at);
    return why == refusal::out_of_reach ? check_staged(range, needed) : why;
}

[[gnu::cold]] refusal key_memory::check_staged(const remote_range& range, access needed) const noexcept
{
    keys::located found;
    return find_staged(range, needed, found);
}

refusal key_memory::write(const remote_range& range, std::span<const std::uint8_t> bytes)
{
    std::byte* at = nullptr;
    const refusal why = find(range, access::remote_write, at);
    if (why == refusal::none && !store(at, bytes))
        return refusal::memory_gone;
    return why == refusal::out_of_reach ? write_staged(range, bytes) : why;
}

[[gnu::cold]] refusal key_memory::write_staged(const remote_range& range, std::span<const std::uint8_t> bytes)
{
    keys::located found;
    const refusal why = find_staged(range, access::remote_write, found);
    return why == refusal::none ? staged_->write(found, bytes) : why;
}

refusal key_memory::read(const remote_range& range, std::span<const std::uint8_t>& bytes)
{
    std::byte* at = nullptr;
    const refusal why = find(range, access::remote_read, at);
    if (why == refusal::none)
        bytes = {reinterpret_cast<const std::uint8_t*>(at), range.bytes};
    return why == refusal::out_of_reach ? read_staged(range, bytes) : why;
}

[[gnu::cold]] refusal key_memory::read_staged(const remote_range& range, std::span<const std::uint8_t>& bytes)
{
    keys::located found;
    if (const refusal why = find_staged(range, access::remote_read, found); why != refusal::none)
        return why;
    wanted_bytes part = staged_->part_of_read(range.bytes);
    const remote_range all{range.key, range.address, part.count + part.ahead};
    if (keys::located there; part.ahead != 0 && find_staged(all, access::remote_read, there) != refusal::none)
        part.ahead = 0;
    return staged_->read(found, part, bytes);
}

refusal key_memory::word(std::uint32_t key, std::uint64_t address, std::uint64_t*& word)
{
    std::byte* at = nullptr;
    if (const refusal why = find({key, address, sizeof *word}, access::remote_atomic, at); why != refusal::none)
        return why == refusal::out_of_reach ? refusal::staged_atomic : why;
    if (reinterpret_cast<std::uintptr_t>(at) % sizeof *word != 0)
        return refusal::misaligned_word;
    word = reinterpret_cast<std::uint64_t*>(at);
    return refusal::none;
}

refusal key_memory::may_invalidate(std::uint32_t key)
{
    const refusal why = nic_.may_invalidate(key, for_);
    return why == refusal::not_a_window && nic_.find(key) ? refusal::not_invalidated : why;
}

void key_memory::invalidate(std::uint32_t key)
{
    if (nic_.invalidate(key, for_) == refusal::none && held_ != nullptr)
        held_->remove();
}

} // namespace weftio::roce
