// What the rings of an engine may register with the kernel, and which rings have.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "storage/statistics.hpp"

namespace weftio::storage {

/// Registering saves io_uring from looking a descriptor up, or from pinning memory, for each io. A ring registers what
/// it uses often. What ends must leave here, so that no ring keeps it: a file that a ring has registered stays open,
/// and memory stays pinned. Names are never used twice in a process; 0 names nothing. Any thread.
class registrations {
 public:
    struct range {
        std::byte* first = nullptr;
        std::size_t bytes = 0;
    };
    /// A ring that has registered something. Called under the mutex.
    class ring {
     public:
        virtual void drop_file(std::uint64_t name) noexcept = 0;
        virtual void drop_memory(std::uint64_t name) noexcept = 0;

     protected:
        ~ring() = default;
    };

    explicit registrations(tally& counts);
    registrations(const registrations&) = delete;
    registrations& operator=(const registrations&) = delete;

    /// The first of `count` names of descriptors.
    static std::uint64_t name_files(unsigned count) noexcept;
    /// The bytes must stay mapped until leave_memory(). 0 when there is no memory for it.
    std::uint64_t enter_memory(range which) noexcept;
    /// Ios that are under way go on.
    void leave_memory(std::uint64_t name) noexcept;
    /// @pre no io of these descriptors is under way
    void leave_files(std::uint64_t first, unsigned count) noexcept;

    void join(ring& which);
    void leave(ring& which) noexcept;

    /// Held while a ring registers something, and while it is notified of what ends.
    std::mutex mutex;
    /// Under the mutex. @return no bytes: the memory has ended
    range find(std::uint64_t memory) const noexcept;
    /// Under the mutex: adds to what rings hold now.
    void count(int files, int buffers) noexcept;
    /// A ring was refused: counted, and logged once per engine. @param what  "files" or "memory"
    void refused(const char* what, int failure) noexcept;

 private:
    bool same_process() const noexcept;

    const pid_t maker_;
    live_statistics::of_rings& counts_;
    std::vector<ring*> rings_;
    std::unordered_map<std::uint64_t, range> memories_;
    bool logged_ = false;
};

} // namespace weftio::storage
