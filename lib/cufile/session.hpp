// What is registered between the opening and the closing of the driver.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <unordered_set>

#include "api.hpp"
#include "weftio/file.hpp"

namespace weftio::cufile {

/// A registered file.
struct handle {
    handle(const file_engine& engine, int descriptor, dev_t device, ino_t inode)
        : on(engine, descriptor), device(device), inode(inode)
    {}

    const file on;
    const dev_t device;
    const ino_t inode;
    std::shared_mutex in_use;         ///< shared: by a call; alone: by who ends the registration
    bool ended = false;               ///< guarded by in_use
    std::atomic<bool> stream_ordered; ///< an operation was enqueued on a stream
};

/// Registered memory. The engine has what has overlapped no other: it keeps operations within one registration.
struct buffer {
    std::size_t bytes;
    std::optional<file_buffer> registered;
};

/// A handle that cannot be deregistered meanwhile.
class held_handle {
 public:
    /// Throws `failure` CU_FILE_HANDLE_NOT_REGISTERED.
    explicit held_handle(std::shared_ptr<handle> held);

    handle& operator*() const noexcept { return *held_; }
    handle* operator->() const noexcept { return held_.get(); }

 private:
    std::shared_ptr<handle> held_;
    std::shared_lock<std::shared_mutex> lock_;
};

/// Any thread. Functions throw `failure`, or weftio::error.
class session {
 public:
    explicit session(file_engine_options options);
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    /// Ends all registrations and batches. Waits for calls that use them.
    void end() noexcept;

    CUfileHandle_t add_handle(int descriptor);
    /// Waits for calls that use the handle. Unknown handles are ignored.
    void end_handle(CUfileHandle_t name) noexcept;
    held_handle find_handle(CUfileHandle_t name) const;

    void add_buffer(void* address, std::size_t bytes);
    void end_buffer(const void* address);
    /// Returns base + offset. Throws CU_FILE_INVALID_VALUE for a null pointer and a negative offset, and
    /// CU_FILE_INVALID_MAPPING_RANGE when `base` is in registered memory and the range exceeds all that it is in.
    std::byte* memory_of(void* base, off_t offset, std::size_t bytes) const;

    CUfileBatchHandle_t add_batch(unsigned capacity);
    void end_batch(CUfileBatchHandle_t name) noexcept;
    std::shared_ptr<file_batch> find_batch(CUfileBatchHandle_t name) const;

    void add_stream(CUstream stream);
    void end_stream(CUstream stream);

 private:
    /// Waits for calls, and lets none begin any more.
    void end_calls(handle& ended) const noexcept;
    void require_unknown(int descriptor, dev_t device, ino_t inode) const;
    /// Takes memory that overlaps the range from the engine. Returns whether there is any.
    bool withdraw_overlapped(std::uintptr_t first, std::size_t bytes);
    void* next_name() noexcept;

    const file_engine engine_;
    mutable std::shared_mutex mutex_; ///< guards what follows
    std::uintptr_t last_name_ = 0x1000;
    std::unordered_map<void*, std::shared_ptr<handle>> handles_;
    std::map<std::uintptr_t, buffer> buffers_; ///< by address
    std::size_t longest_buffer_ = 0;           ///< of those that there were
    std::unordered_map<void*, std::shared_ptr<file_batch>> batches_;
    std::unordered_set<void*> streams_;
};

} // namespace weftio::cufile
