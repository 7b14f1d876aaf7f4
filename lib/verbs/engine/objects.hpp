// What a program makes by commands, and names by handles from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <rdma/ib_user_verbs.h>

#include "channel.hpp"
#include "failure.hpp"
#include "watcher.hpp"
#include "weftio/completion_queue.hpp"
#include "weftio/memory.hpp"
#include "weftio/progress.hpp"
#include "weftio/queue_pair.hpp"

namespace weftio::verbs {

/// Of each kind. Who uses another object of the program keeps it from being destroyed: EBUSY.
struct used {
    int users = 0;
};

/// Counts as a user of another object as long as it lives.
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

struct region {
    use<domain> in;
    memory bytes; ///< the program's
    std::optional<memory_region> registered;
    std::uint64_t start = 0, length = 0, iova = 0;
    std::uint32_t access = 0;
};

/// Completion events of a program: struct ib_uverbs_comp_event_desc.
struct channel : used {
    event_channel events{sizeof(ib_uverbs_comp_event_desc)};
};

struct completions : used {
    std::uint64_t user_handle = 0; ///< by which events name it
    memory ring_bytes, record_bytes;
    std::optional<completion_queue> queue;
    use<channel> tells;                 ///< none: the program only polls
    std::atomic<std::uint32_t> told{0}; ///< completion events
    std::uint32_t async = 0;            ///< asynchronous events
    bool overrun_told = false;
};

/// Wants looks of the watcher as long as it lives.
class looked_at {
 public:
    explicit looked_at(watcher& by) : by_(by) { by_.want_looks(1); }
    looked_at(const looked_at&) = delete;
    looked_at& operator=(const looked_at&) = delete;
    ~looked_at() { by_.want_looks(-1); }

 private:
    watcher& by_;
};

struct pair {
    explicit pair(watcher& by) : looks(by) {}

    const looked_at looks;
    std::uint64_t user_handle = 0;
    use<domain> in;
    use<completions> sends, receives;
    memory ring_bytes, record_bytes;
    std::shared_ptr<const unsigned> doorbell; ///< its page
    std::optional<progress_engine> failures;  ///< it ends behind the queue
    std::optional<queue_pair> queue;
    rdma_service service = rdma_service::reliable;
    ib_uverbs_ex_create_qp made{}; ///< as it was asked for
    ib_uverbs_modify_qp set{};     ///< what was set since RESET, for QUERY_QP
    std::string peer_address{};    ///< set since RESET, as text
    std::uint32_t async = 0;       ///< asynchronous events
    /// In RTR, before the peer's first packet: what rdma_counters::requests was when it came there.
    std::optional<std::uint64_t> first_request{};
    bool tells_drained = false; ///< the program waits for SQ_DRAINED
};

/// Objects of one kind by handle. @throws failure
template <class Object>
class table {
 public:
    /// What a command refers to. @throws failure EINVAL
    const std::shared_ptr<Object>& find(std::uint32_t handle) const { return find(handle, EINVAL); }
    const std::shared_ptr<Object>& find(std::uint32_t handle, int missing) const
    {
        const auto found = objects_.find(handle);
        require(found != objects_.end(), missing);
        return found->second;
    }
    std::shared_ptr<Object> look_up(std::uint32_t handle) const
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
