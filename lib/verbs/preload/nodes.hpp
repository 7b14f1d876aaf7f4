// Finds out which descriptors are nodes.
//
// A number may have been closed without our knowledge, such as by fclose(), and reused. The inode of the node is
// therefore stored, too, and a match is verified with the descriptor itself.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

namespace weftio::verbs::preload {

/// Descriptors from node_pages * page_numbers on are never nodes.
inline constexpr unsigned page_numbers = 1024, node_pages = 1024;
using node_page = std::atomic<std::uint64_t>[page_numbers];
/// Pages are allocated when a node in them is stored, and never freed. An entry is 0, or a value of note_of().
extern constinit std::atomic<node_page*> node_table[node_pages]; // NOLINT(bugprone-dynamic-static-initializers): not

/// Whether the number has been a node. Async-signal-safe, like all functions here.
inline bool may_be_node(int descriptor) noexcept
{
    const auto number = static_cast<unsigned>(descriptor);
    if (number >= page_numbers * node_pages)
        return false;
    const node_page* const page = node_table[number / page_numbers].load(std::memory_order_acquire);
    return page != nullptr && (*page)[number % page_numbers].load(std::memory_order_relaxed) != 0;
}

/// The device of a node; -1: the descriptor is not a node.
int node_of(int descriptor) noexcept;

/// Stores a node that was opened. Returns false, with errno, on failure.
bool remember_node(int descriptor, unsigned device) noexcept;

/// `to` has become a duplicate of `from`. Returns false, with errno, if this cannot be stored.
bool copy_node(int from, int to) noexcept;

void forget_node(int descriptor) noexcept;

/// Whether there is a node in [first, last].
bool has_nodes(unsigned first, unsigned last) noexcept;

/// Removes the entries in [first, last] whose descriptors are no longer nodes.
void forget_closed_nodes(unsigned first, unsigned last) noexcept;

} // namespace weftio::verbs::preload
