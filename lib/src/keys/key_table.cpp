#include "keys/key_table.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "weftio/device/platform.h"
#include "weftio/error.hpp"

namespace weftio::keys {

namespace {

unsigned number_for(std::string_view who, key_table& table)
{
    if (const std::optional<unsigned> number = table.take_nic())
        return *number;
    throw error(errc::out_of_memory,
                fmt::format("weftio: {}: this process has {} ports and DMA engines, the maximum; close one first", who,
                            key_table::most_nics));
}

} // namespace

key_table::~key_table()
{
    for (std::atomic<slot*>& chunk : chunks_)
        delete[] chunk.load(std::memory_order_relaxed);
}

std::uint32_t key_table::take_index(free_list& from, std::string_view who)
{
    if (from.count > rest_ || (from.count != 0 && next_ == end_)) {
        --from.count;
        const auto next = place(from.first << 8)->user_or_next.exchange(0, std::memory_order_relaxed);
        return std::exchange(from.first, static_cast<std::uint32_t>(next));
    }
    if (next_ == end_)
        throw error(errc::out_of_memory,
                    fmt::format("weftio: {}: all {} keys of this process are in use; free {} first", who,
                                end_ - first_index, who == "memory_window" ? "windows" : "regions"));
    if (std::atomic<slot*>& chunk = chunks_[next_ / chunk_slots]; !chunk.load(std::memory_order_relaxed))
        chunk.store(new slot[chunk_slots], std::memory_order_release);
    return next_++;
}

void key_table::give_back(std::uint32_t index, free_list& to) noexcept
{
    if (to.count == 0)
        to.first = index;
    else
        place(to.last << 8)->user_or_next.store(index, std::memory_order_relaxed);
    to.last = index;
    ++to.count;
    --in_use_;
}

std::uint32_t key_table::add(const key_entry& entry)
{
    const std::scoped_lock one_at_a_time(changing_);
    const std::uint32_t index = take_index(free_regions_, "memory_region");
    slot& made = *place(index << 8);
    const std::uint32_t key = index << 8 | made.variant;
    made.begin_change(); // who holds a generation of an earlier key sees that it is over
    made.store(entry);
    made.windows_or_region.store(0, std::memory_order_relaxed);
    // Release, pairs with the acquire in read(): the entry of the key is written.
    made.key.store(key, std::memory_order_release);
    made.end_change();
    ++in_use_;
    return key;
}

std::uint32_t key_table::renew(std::uint32_t key, const key_entry& entry) noexcept
{
    const std::scoped_lock one_at_a_time(changing_);
    slot& at = *place(key);
    const std::uint32_t made = (key & ~0xffu) | ++at.variant;
    at.begin_change();
    at.store(entry);
    at.key.store(made, std::memory_order_release); // as in add()
    at.end_change();
    return made;
}

bool key_table::change(std::uint32_t key, const key_entry& entry) noexcept
{
    slot* at = place(key);
    if (!at || key == none_)
        return false;
    at->begin_change();
    const bool exists = at->key.load(std::memory_order_relaxed) == key;
    if (exists)
        at->store(entry);
    at->end_change();
    return exists;
}

/// Makes the sequence odd. One changes at a time.
void key_table::slot::begin_change() noexcept
{
    std::uint32_t even = sequence.load(std::memory_order_relaxed) & ~1u;
    while (!sequence.compare_exchange_weak(even, even + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        even &= ~1u;
        weftio_relax(1);
    }
}

/// Release, each of them: who sees one of the values sees that the sequence is odd.
void key_table::slot::store(const key_entry& entry) noexcept
{
    constexpr auto order = std::memory_order_release;
    cpu.store(entry.cpu, order);
    device.store(entry.device, order);
    base.store(entry.base, order);
    to_device.store(entry.to_device, order);
    bytes.store(entry.bytes, order);
    domain.store(entry.domain, order);
    rights.store(entry.rights, order);
}

void key_table::slot::end_change() noexcept
{
    sequence.fetch_add(1, std::memory_order_release);
}

bool key_table::withdraw(std::uint32_t key) noexcept
{
    slot* at = place(key);
    return at && key != none_ && at->key.compare_exchange_strong(key, none_);
}

void key_table::release(std::uint32_t key) noexcept
{
    const std::scoped_lock one_at_a_time(changing_);
    ++place(key)->variant;
    give_back(key >> 8, free_regions_);
}

std::uint32_t key_table::in_use() const noexcept
{
    const std::scoped_lock one_at_a_time(changing_);
    return in_use_;
}

std::optional<unsigned> key_table::take_nic() noexcept
{
    const std::scoped_lock one_at_a_time(changing_);
    const auto free = static_cast<unsigned>(std::countr_one(nics_));
    if (free == most_nics)
        return std::nullopt;
    nics_ |= std::uint64_t{1} << free;
    return free;
}

void key_table::give_back_nic(unsigned nic) noexcept
{
    const std::scoped_lock one_at_a_time(changing_);
    nics_ &= ~(std::uint64_t{1} << nic);
}

void key_table::grant(std::uint32_t key, unsigned nic, bool lendable) noexcept
{
    slot& at = *place(key);
    at.lends.fetch_or(std::uint64_t{lendable} << nic, std::memory_order_relaxed);
    // Release, pairs with the acquire in read(): the key and its entry are written.
    at.nics.fetch_or(std::uint64_t{1} << nic, std::memory_order_release);
}

void key_table::forget(std::uint32_t key, unsigned nic) noexcept
{
    slot& at = *place(key);
    at.nics.fetch_and(~(std::uint64_t{1} << nic), std::memory_order_relaxed);
    at.lends.fetch_and(~(std::uint64_t{1} << nic), std::memory_order_relaxed);
}

nic_keys::nic_keys(std::string_view who, key_table& table) : table_(table), number_(number_for(who, table)) {}

} // namespace weftio::keys
