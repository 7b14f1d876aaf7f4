// weftio-run --stale: registrations whose pages the program has unmapped, or given back, while their keys live. A
// ConnectX keeps the old pages then, and the program looks at others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "keys/key_table.hpp"
#include "registrations/node.hpp"
#include "settings.hpp"
#include "stale_calls.hpp"

namespace weftio::verbs {

/// Who has registered a region.
struct stale_maker {
    int thread = 0;
    char name[16] = "";
    std::uint64_t when_ns = 0;
    std::array<void*, 24> frames{}; ///< of its stack, with WEFTIO_LOG=debug
    int frame_count = 0;
};

/// Pages of a region that are gone.
struct stale_part {
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<std::uint32_t> call{0}; ///< by which they went: stale_calls::find()
};

/// A registration that is watched. What is atomic changes without a lock: by the thread that reads events, and by
/// threads of the program whose calls are heard.
struct stale_record {
    static constexpr unsigned most_parts = 8; ///< further ones are not told

    std::atomic<std::uintptr_t> begin{0}, end{0}; ///< its pages; 0: it is not watched
    std::uint32_t key = 0, number = 0;            ///< number: 1 and up, the mark of the key
    const void* owner = nullptr;                  ///< its context
    std::uint64_t start = 0, length = 0;
    stale_maker maker;
    std::atomic<bool> by_events{false}; ///< events tell of its pages; else the program's calls do
    std::array<stale_part, most_parts> parts;
    std::atomic<unsigned> part_count{0}; ///< taken; of one that is being written, the end is 0
    std::atomic<bool> told{false};

    /// The part that has one of these bytes; nullptr: they are as they were registered.
    const stale_part* find(std::uintptr_t first, std::uint64_t bytes) const noexcept;
    /// @return whether it knows these pages as gone now
    bool add_part(const registrations::range& gone, std::uint32_t call) noexcept;
};

/// What is to be told about one access.
struct stale_report {
    enum state { free, being_written, ready };

    std::atomic<state> now{free};
    keys::stale_access access;
    const void* owner = nullptr;
    std::uint64_t start = 0, length = 0, when_ns = 0;
    std::uintptr_t gone_begin = 0, gone_end = 0;
    stale_maker maker;
    stale_call by;
    bool is_mapped = false; ///< another page is now where the first byte of the access is that is gone
};

/// The only one of a process. It watches by a userfaultfd, whose events tell what Linux has done, whoever asked for it:
/// also the C library's own calls, and those without the C library. Nothing of the program is changed for it. Of pages
/// that have no events, which are those of files and of shmat(), it hears by the preloaded library.
///
/// The call that changes a mapping waits until its event has been read. So the thread that reads takes no lock and
/// neither allocates nor frees, and waits for nobody.
class stale_registrations {
 public:
    /// Call it once, when the engine starts. If the system refuses events, says so in the log, and hears calls only.
    void start(stale_mode mode, bool asked_for);
    /// Watches from now on. Call it behind the registration. @return its number; 0: it is not watched
    std::uint32_t watch(std::uint32_t key, std::uint64_t start, std::uint64_t length, const void* owner);
    /// A call of the calling thread has changed mappings. @param since_ns  when it began
    void hear(long number, const unsigned long* arguments, std::uint64_t since_ns) noexcept;
    /// Ends the events of these pages, because the program needs them otherwise. @return whether there were any
    bool give_up_events(const registrations::range& pages) noexcept;
    /// Registrations without events: the preloaded library tells of calls while there are any.
    const std::atomic<int>& without_events() const noexcept { return without_events_; }
    /// From now on the key is not marked: it may be changed and withdrawn. The judge may still look.
    void stop(std::uint32_t number) noexcept;
    /// @pre stop(), and no engine accesses by the key
    void forget(std::uint32_t number) noexcept;
    /// Logs what is to be told of one context. `peer` names the peer of a queue pair.
    template <class Peer>
    void tell(const void* owner, Peer&& peer)
    {
        if (waiting_.load(std::memory_order_relaxed) == 0) [[likely]]
            return;
        for (stale_report& each : reports_)
            if (each.now.load(std::memory_order_acquire) == stale_report::ready && each.owner == owner) {
                log(each,
                    each.access.peers_of == 0 ? "" : peer(static_cast<std::uint32_t>(each.access.peers_of & 0xffffff)));
                each.now.store(stale_report::free, std::memory_order_release);
                waiting_.fetch_sub(1);
            }
    }
    stale_mode mode() const noexcept { return mode_; }

 private:
    static constexpr std::size_t chunk_records = 64, most_chunks = 4096;

    void read_events() noexcept;
    void read_one() noexcept;
    void mark(const registrations::range& gone, std::uint32_t call) noexcept;
    void mark_unmapped(const registrations::range& within, std::uint32_t call) noexcept;
    void mark_heard(const stale_call& heard, std::uint64_t since_ns) noexcept;
    void mark_one(stale_record& one, const registrations::range& gone, std::uint32_t call) noexcept;
    template <class Each>
    void for_each(Each&& each) const noexcept;
    void lose_events(stale_record& of) noexcept;
    stale_record* find(std::uint64_t number) const noexcept;
    stale_record* take();
    bool is_shared_with_others(const registrations::range& pages) const noexcept;
    void remove(const stale_record& one) noexcept;
    static refusal judge(const keys::stale_access& of) noexcept;
    refusal judge_one(const keys::stale_access& of) noexcept;
    void report(const keys::stale_access& of, stale_record& about, const stale_part& part) noexcept;
    void log(const stale_report& what, const std::string& peer) const;

    stale_mode mode_ = stale_mode::off;
    bool with_stacks_ = false;
    int userfault_ = -1;
    std::mutex mutex_; ///< guards what follows, but for atomics
    std::array<std::atomic<stale_record*>, most_chunks> chunks_{};
    std::atomic<std::uint32_t> made_{0}; ///< records
    std::vector<std::uint32_t> free_;
    std::multimap<std::uintptr_t, const stale_record*> watched_; ///< by their first page
    std::size_t longest_ = 0;                                    ///< of all that were ever watched
    std::atomic<int> marking_{0};                                ///< threads that look at records
    std::atomic<int> without_events_{0};
    std::array<stale_report, 32> reports_;
    std::atomic<int> waiting_{0};
    stale_calls calls_; ///< of the thread that reads
};

stale_registrations& stale();

/// A region as long as it is watched.
class watched_region {
 public:
    watched_region() = default;
    watched_region(std::uint32_t key, std::uint64_t start, std::uint64_t length, const void* owner)
        : number_(stale().mode() == stale_mode::off ? 0 : stale().watch(key, start, length, owner))
    {}
    watched_region(const watched_region&) = delete;
    watched_region& operator=(const watched_region&) = delete;
    ~watched_region()
    {
        stop();
        if (number_ != 0)
            stale().forget(number_);
    }
    void stop() noexcept
    {
        if (number_ != 0)
            stale().stop(number_);
    }

 private:
    std::uint32_t number_ = 0;
};

} // namespace weftio::verbs
