#include "registrations/page_map.hpp"

#include <algorithm>

namespace weftio::registrations {

void page_map::prepare()
{
    spare_.reserve(all_.size() + most_new_tables);
    while (spare_.size() < most_new_tables)
        spare_.push_back(&all_.emplace_back());
}

void page_map::set(const range& pages, node& node) noexcept
{
    fill(root_, levels - 1, pages.begin >> shift_, end_of(pages), reinterpret_cast<std::uintptr_t>(&node));
}

void page_map::clear(const range& pages) noexcept
{
    fill(root_, levels - 1, pages.begin >> shift_, end_of(pages), 0);
}

/// Fills what lies of pages [first, end) in the table. Slots whose pages are all in the range have `value`; others lead
/// to a table. So no slot with a node is ever divided: a range is cleared as it was set.
void page_map::fill(table& at, unsigned level, std::uintptr_t first, std::uintptr_t end, std::uintptr_t value) noexcept
{
    const std::uintptr_t span = std::uintptr_t{1} << bits * level;
    for (std::uintptr_t page = first; page < end;) {
        const std::uintptr_t next = std::min(end, (page | (span - 1)) + 1);
        const std::size_t slot = page >> bits * level & (slots_of_table - 1);
        if (next - page == span) {
            store(at, slot, value);
        } else {
            table& below = child(at, slot);
            fill(below, level - 1, page, next, value);
            if (below.used == 0) {
                store(at, slot, 0);
                spare_.push_back(&below); // prepare() has reserved its place
            }
        }
        page = next;
    }
}

void page_map::store(table& at, std::size_t slot, std::uintptr_t value) noexcept
{
    const std::uintptr_t before = at.slots[slot].load(std::memory_order_relaxed);
    at.used = at.used + (value != 0) - (before != 0);
    at.slots[slot].store(value, std::memory_order_release);
}

page_map::table& page_map::child(table& at, std::size_t slot) noexcept
{
    const std::uintptr_t there = at.slots[slot].load(std::memory_order_relaxed);
    if ((there & is_table) != 0)
        return *reinterpret_cast<table*>(there - is_table);
    table& fresh = *spare_.back();
    spare_.pop_back();
    store(at, slot, reinterpret_cast<std::uintptr_t>(&fresh) + is_table);
    return fresh;
}

} // namespace weftio::registrations
