// The objects that a program makes by commands, and names by handles.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

#include "channel.hpp"
#include "failure.hpp"
#include "stale.hpp"
#include "watcher.hpp"
#include "weftio/completion_queue.hpp"
#include "weftio/memory.hpp"
#include "weftio/memory_window.hpp"
#include "weftio/progress.hpp"
#include "weftio/queue_pair.hpp"
#include "weftio/shared_receives.hpp"

namespace weftio::verbs {

/// Base of all kinds. An object that another one uses cannot be destroyed: EBUSY.
struct used {
    int users = 0;
};

/// A reference to another object that counts as a user of it.
template <class Object>
class use {
 public:
    use() = default;
    explicit use(std::shared_ptr<Object> of) : of_(std::move(of)) { ++of_->users; }
    use(use&& other) noexcept : of_(std::move(other.of_)) { other.of_ = nullptr; }
    use& operator=(use&& other) noexcept
    {
        std::swap(of_, other.of_);
        return *this;
    }
    ~use()
    {
        if (of_)
            --of_->users;
    }
    Object* operator->() const noexcept { return of_.get(); }
    Object& operator*() const noexcept { return *of_; }
    const std::shared_ptr<Object>& share() const noexcept { return of_; }
    explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
    std::shared_ptr<Object> of_;
};

struct domain : used {
    protection_domain number = protection_domain::make();
};

/// A part of a file, mapped as long as the object lives.
class mapped_file {
 public:
    /// @param offset  a multiple of the page size
    mapped_file(int descriptor, std::uint64_t offset, std::size_t bytes, int protection) noexcept : bytes_(bytes)
    {
        void* const made = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, static_cast<off_t>(offset));
        at_ = made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
    }
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file()
    {
        if (at_ != nullptr)
            munmap(at_, bytes_);
    }
    std::byte* begin() const noexcept { return at_; } ///< nullptr: it cannot be mapped

 private:
    std::byte* at_;
    std::size_t bytes_;
};

struct region {
    region() = default;
    region(const region&) = delete;
    region& operator=(const region&) = delete;
    ~region()
    {
        if (watched)
            watched->stop(); // before the key ends
    }

    use<domain> in;
    std::optional<mapped_file> mapped;     ///< of a dma-buf that is no GPU's
    memory bytes;                          ///< the program's memory
    std::optional<watched_region> watched; ///< destroyed behind the key
    std::optional<memory_region> registered;
    std::uint64_t start = 0, length = 0, iova = 0;
    std::uint32_t access = 0;
};

struct window {
    use<domain> in;
    std::optional<memory_window> made;
};

/// A completion channel: the program reads struct ib_uverbs_comp_event_desc from it.
struct channel : used {
    event_channel events{sizeof(ib_uverbs_comp_event_desc)};
};

struct completions : used {
    std::uint64_t user_handle = 0; ///< names it in events
    memory ring_bytes, record_bytes;
    use<channel> tells;                            ///< channel to notify; none: the program only polls
    std::atomic<std::uint32_t> events_reported{0}; ///< completion events sent
    std::uint32_t async = 0;                       ///< asynchronous events sent
    bool overrun_reported = false;
    std::optional<completion_queue> queue; ///< destroyed first, because it notifies by the members above
};

/// Requests regular polls from the watcher as long as it lives.
class polled {
 public:
    explicit polled(watcher& by) : by_(by) { by_.want_polls(1); }
    polled(const polled&) = delete;
    polled& operator=(const polled&) = delete;
    ~polled() { by_.want_polls(-1); }

 private:
    watcher& by_;
};

/// A shared receive queue.
struct shared : used {
    std::uint64_t user_handle = 0; ///< names it in events
    use<domain> in;
    memory ring_bytes, record_bytes;
    std::optional<shared_receives> queue;
    std::uint32_t most_entries = 0, most_segments = 0; ///< that can be posted; of an entry
    std::uint64_t limits_told = 0;                     ///< of shared_receives_standing::limits_reached
    bool armed = false, broken = false;                ///< a limit is set; SRQ_ERR was sent
    std::uint32_t async = 0;                           ///< asynchronous events sent
};

struct pair {
    explicit pair(watcher& by) : polls(by) {}

    const polled polls;
    std::uint64_t user_handle = 0;
    use<domain> in;
    use<completions> sends, receives;
    use<shared> shares; ///< its receives come from there; none: from a ring of its own
    memory ring_bytes, record_bytes;
    std::shared_ptr<const unsigned> doorbell; ///< its page
    std::optional<progress_engine> failures;  ///< destroyed after the queue
    std::optional<queue_pair> queue;
    rdma_service service = rdma_service::reliable;
    ib_uverbs_ex_create_qp made{};                         ///< as requested by the program
    std::uint32_t receive_entries = 0, receive_pieces = 0; ///< of its ring, which may be larger than requested
    ib_uverbs_modify_qp set{};                             ///< attributes set since RESET, for QUERY_QP
    std::string peer_address{};                            ///< set since RESET, in text form
    std::uint32_t async = 0;                               ///< asynchronous events sent
    /// In RTR before the peer's first packet: rdma_counters::requests when RTR was entered.
    std::optional<std::uint64_t> first_request{};
    bool tells_drained = false;     ///< the program requests SQ_DRAINED
    bool last_taken = false;        ///< QP_LAST_WQE_REACHED was sent since RESET
    std::set<std::string> groups{}; ///< multicast groups that it is attached to
};

/// What an entry names by an address handle stands in the entry, so this only has a handle.
struct address {
    use<domain> in;
};

/// Objects of one kind by handle.
template <class Object>
class table {
 public:
    /// The object of a handle. @throws failure EINVAL
    const std::shared_ptr<Object>& find(std::uint32_t handle) const { return find(handle, EINVAL); }
    const std::shared_ptr<Object>& find(std::uint32_t handle, int missing) const
    {
        const auto found = objects_.find(handle);
        require(found != objects_.end(), missing);
        return found->second;
    }
    std::shared_ptr<Object> try_find(std::uint32_t handle) const
    {
        const auto found = objects_.find(handle);
        return found == objects_.end() ? nullptr : found->second;
    }
    void add(std::uint32_t handle, std::shared_ptr<Object> object) { objects_.emplace(handle, std::move(object)); }
    void remove(std::uint32_t handle) { objects_.erase(handle); }
    void clear() { objects_.clear(); }
    auto begin() const { return objects_.begin(); }
    auto end() const { return objects_.end(); }
    std::size_t size() const { return objects_.size(); }

 private:
    std::map<std::uint32_t, std::shared_ptr<Object>> objects_;
};

} // namespace weftio::verbs
