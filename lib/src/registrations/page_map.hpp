// Which registration holds a page: a tree in the manner of page tables.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "registrations/node.hpp"

namespace weftio::registrations {

/// - Threads: find() from any, without a lock. The others under the lock of the cache.
/// - Memory: a table is never freed, but used again. A find() that reads a table which is used again meanwhile returns
///   any node, or none.
class page_map {
 public:
    /// @param shift  a page has 2^shift bytes
    explicit page_map(unsigned shift) : shift_(shift) {}
    page_map(const page_map&) = delete;
    page_map& operator=(const page_map&) = delete;

    /// The node that was set for the page of the address; a hint: hold it, and then look at its range.
    node* find(std::uintptr_t address) const noexcept
    {
        const std::uintptr_t page = address >> shift_;
        const table* at = &root_;
        for (unsigned level = levels;;) {
            // Acquire, pairs with the release in fill().
            const std::uintptr_t slot =
                at->slots[page >> bits * --level & (slots_of_table - 1)].load(std::memory_order_acquire);
            if ((slot & is_table) == 0)
                return reinterpret_cast<node*>(slot);
            if (level == 0) // the table is used again
                return nullptr;
            at = reinterpret_cast<const table*>(slot - is_table);
        }
    }
    /// Allocates what one set() needs. Throws std::bad_alloc.
    void prepare();
    /// @pre prepare(); none of the pages has a node
    void set(const range& pages, node& node) noexcept;
    /// @pre set() of the same pages
    void clear(const range& pages) noexcept;
    std::size_t tables() const noexcept { return all_.size() - spare_.size(); } ///< in use, besides the root

 private:
    static constexpr unsigned levels = 5, bits = 9; ///< 57 bits of an address with pages of 4 KiB
    static constexpr std::size_t slots_of_table = std::size_t{1} << bits;
    static constexpr std::uintptr_t is_table = 1;                    ///< in a slot; else it is a node, or 0
    static constexpr std::size_t most_new_tables = 2 * (levels - 1); ///< along both ends of a range

    struct table {
        std::array<std::atomic<std::uintptr_t>, slots_of_table> slots{};
        std::size_t used = 0; ///< slots that are not 0
    };

    /// Behind the last page, which may be a part of one.
    std::uintptr_t end_of(const range& pages) const noexcept
    {
        return (pages.end + (std::uintptr_t{1} << shift_) - 1) >> shift_;
    }
    void fill(table& at, unsigned level, std::uintptr_t first, std::uintptr_t end, std::uintptr_t value) noexcept;
    void store(table& at, std::size_t slot, std::uintptr_t value) noexcept;
    table& child(table& at, std::size_t slot) noexcept;

    const unsigned shift_;
    table root_;
    std::deque<table> all_;
    std::vector<table*> spare_;
};

} // namespace weftio::registrations
