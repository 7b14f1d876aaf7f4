// What one ring has registered with the kernel.
#pragma once

#include <liburing.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "storage/registrations.hpp"

namespace weftio::storage {

/// The tables of files and of memory of one ring. The ring's owner looks names up; any thread drops them. A table has
/// few places: what finds its place taken is used unregistered.
class uring_tables final : registrations::ring {
 public:
    static constexpr unsigned slots = 64;
    /// Ios of a ring before it registers files: shorter lives do not pay for it.
    static constexpr unsigned ios_before = 64;
    /// The most that io_uring registers as one.
    static constexpr std::size_t most_bytes = std::size_t{1} << 30;

    uring_tables(io_uring& ring, registrations& of);
    uring_tables(const uring_tables&) = delete;
    uring_tables& operator=(const uring_tables&) = delete;
    ~uring_tables(); ///< before the end of the ring

    /// Where the descriptor is in the table, after it may have been put there. @return -1: it is not
    int file(std::uint64_t name, int descriptor) noexcept;
    /// Where the memory is in the table. It is registered once as many bytes went there one by one as it has, so that
    /// pinning all of it costs no more than what was spent until then. @return -1: it is not
    int memory(std::uint64_t name, std::size_t bytes) noexcept;

 private:
    /// Memory that is used, and is not registered. Of the ring's owner.
    struct candidate {
        std::uint64_t name = 0;
        std::uint64_t moved = 0, whole = 0; ///< bytes
        bool refused = false;
    };

    int enter_file(unsigned slot, std::uint64_t name, int descriptor) noexcept;
    int enter_memory(unsigned slot, candidate& which) noexcept;
    bool has_table(int& status, int (*make)(io_uring*, unsigned), const char* what) noexcept;
    void drop_file(std::uint64_t name) noexcept override;
    void drop_memory(std::uint64_t name) noexcept override;

    io_uring& ring_;
    registrations& of_;
    unsigned ios_ = 0;
    int files_status_ = 1, memories_status_ = 1; ///< 0: there is a table; negative: refused; 1: not asked for yet
    std::array<std::atomic<std::uint64_t>, slots> files_{}, memories_{}; ///< names; changed under the mutex
    std::array<candidate, slots> candidates_{};
};

} // namespace weftio::storage
