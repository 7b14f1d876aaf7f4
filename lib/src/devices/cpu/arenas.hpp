// Memory of the CPU device that NICs read: blocks in a few large arenas, each of which a NIC maps once.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <span>

namespace weftio::devices::cpu {

/// - Ownership: the destructor frees all blocks.
/// - Threads: any.
class arenas {
 public:
    struct block {
        std::byte* address = nullptr; ///< nullptr: no memory
        std::span<const std::byte> arena{};
    };

    arenas() = default;
    arenas(const arenas&) = delete;
    arenas& operator=(const arenas&) = delete;
    ~arenas();

    /// Allocates a block, not zeroed: whole pages where the alignment is a page or more, else whole pairs of cache
    /// lines.
    /// @param alignment  power of two, at most 2 MiB
    block allocate(std::size_t bytes, std::size_t alignment) noexcept;
    void release(void* address) noexcept;

 private:
    struct arena {
        std::byte* begin;
        std::size_t bytes;
        std::map<std::size_t, std::size_t> free{}, used{}; ///< sizes by offset; adjacent free ranges are merged
    };

    static bool find_offset(arena& arena, std::size_t bytes, std::size_t alignment, std::size_t& offset);
    bool add_arena(std::size_t bytes);

    std::mutex mutex_;
    std::list<arena> arenas_;
    std::size_t total_bytes_ = 0;
};

} // namespace weftio::devices::cpu
