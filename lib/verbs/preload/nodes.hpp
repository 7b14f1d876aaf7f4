// Which descriptors are nodes.
//
// A number may have been closed behind our back, such as by fclose(), and given to something else. So what is remembered
// is the inode of the node, too, and a hit is compared with the descriptor as it is.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

namespace weftio::verbs::preload {

/// Descriptors from node_pages * page_numbers on are never nodes.
inline constexpr unsigned page_numbers = 1024, node_pages = 1024;
using node_page = std::atomic<std::uint64_t>[page_numbers];
/// Pages are made when a node is remembered there, and never removed. An entry is 0, or what note_of() makes.
extern constinit std::atomic<node_page*> node_table[node_pages]; // NOLINT(bugprone-dynamic-static-initializers): not

/// Whether the number has been a node's. Async-signal-safe, as all others here.
inline bool may_be_node(int descriptor) noexcept
{
    const auto number = static_cast<unsigned>(descriptor);
    if (number >= page_numbers * node_pages)
        return false;
    const node_page* const page = node_table[number / page_numbers].load(std::memory_order_acquire);
    return page != nullptr && (*page)[number % page_numbers].load(std::memory_order_relaxed) != 0;
}

/// Whether the descriptor is a node, and of which device; -1: it is none.
int node_of(int descriptor) noexcept;

/// A node has been opened. False, with errno, when it cannot be remembered.
bool remember_node(int descriptor, unsigned device) noexcept;

/// `to` is now what `from` is. False, with errno, when that cannot be remembered.
bool copy_node(int from, int to) noexcept;

void forget_node(int descriptor) noexcept;

/// Whether there is a node among [first, last].
bool has_nodes(unsigned first, unsigned last) noexcept;

/// Forgets those of [first, last] that are no nodes any more.
void forget_closed_nodes(unsigned first, unsigned last) noexcept;

} // namespace weftio::verbs::preload
