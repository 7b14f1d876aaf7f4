// What the rings of an engine may register with the kernel, and which rings have.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "registrations/userfault.hpp"
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
    /// Who may unmap memory.
    enum class owner : std::uint8_t { engine, program };
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
    ~registrations();

    /// The first of `count` names of descriptors.
    static std::uint64_t name_files(unsigned count) noexcept;
    /// From now on the program does not promise that its memory stays mapped: rings register it only while Linux tells
    /// of changes, and let go of it when Linux does. @pre no memory of it is there yet
    void distrust() noexcept { trusts_ = false; }
    /// The bytes must stay mapped until leave_memory(), unless distrust(). 0 when there is no memory for it.
    std::uint64_t enter_memory(range which, owner whose = owner::engine) noexcept;
    /// Ios that are under way go on.
    void leave_memory(std::uint64_t name) noexcept;
    /// @pre no io of these descriptors is under way
    void leave_files(std::uint64_t first, unsigned count) noexcept;

    void join(ring& which);
    void leave(ring& which) noexcept;

    /// Call it before an io uses what a ring has registered: makes rings let go of memory that has changed since.
    void keep_up() noexcept
    {
        // Acquire, pairs with the release in watch().
        const auto* monitor = watching_.load(std::memory_order_acquire);
        if (monitor && !monitor->is_quiet())
            handle_changes();
    }

    /// Held while a ring registers something, and while it is notified of what ends.
    std::mutex mutex;
    /// Under the mutex. @return no bytes: the memory has ended
    range find(std::uint64_t memory) const noexcept;
    /// Under the mutex, before a ring registers the memory. @return whether it may
    bool watch(std::uint64_t memory) noexcept;
    /// Under the mutex: adds to what rings hold now.
    void count(int files, int buffers) noexcept;
    /// A ring was refused: counted, and logged once per engine. @param what  "files" or "memory"
    void refused(const char* what, int failure) noexcept;

 private:
    struct entered {
        range at{};
        owner whose = owner::engine;
        bool watched = false;
    };

    bool same_process() const noexcept;
    void handle_changes() noexcept;
    void unwatch(const entered& left) noexcept;
    void not_watched(const std::exception& why) noexcept;

    const pid_t maker_;
    live_statistics::of_rings& counts_;
    bool trusts_ = true;
    std::vector<ring*> rings_;
    std::unordered_map<std::uint64_t, entered> memories_;
    bool logged_ = false;
    std::atomic<const weftio::registrations::userfault*> watching_{nullptr}; ///< monitor_, once there is one
    std::unique_ptr<weftio::registrations::userfault> monitor_; ///< declared last: its threads use the other members
};

} // namespace weftio::storage
