#include "session.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "storage/context.hpp"

namespace weftio::cufile {

namespace {

struct stat status_of(int descriptor)
{
    struct stat seen {};
    require(fstat(descriptor, &seen) == 0, CU_FILE_INVALID_VALUE);
    require(S_ISREG(seen.st_mode) || S_ISBLK(seen.st_mode), CU_FILE_INVALID_FILE_TYPE);
    const int flags = fcntl(descriptor, F_GETFL);
    const bool appends = (flags & O_APPEND) != 0 && (flags & O_ACCMODE) != O_RDONLY; // it ignores offsets
    require(!appends && (flags & O_PATH) == 0, CU_FILE_INVALID_FILE_OPEN_FLAG);
    return seen;
}

} // namespace

held_handle::held_handle(std::shared_ptr<handle> held) : held_(std::move(held))
{
    require(held_ != nullptr, CU_FILE_HANDLE_NOT_REGISTERED);
    lock_ = std::shared_lock(held_->in_use);
    require(!held_->ended, CU_FILE_HANDLE_NOT_REGISTERED);
}

session::session(file_engine_options options) : engine_(std::move(options))
{
    detail::internals::share(engine_)->rings.distrust(); // programs unmap memory that is registered
}

void session::end_calls(handle& ended) const noexcept
{
    const std::unique_lock alone(ended.in_use);
    if (ended.stream_ordered.load(std::memory_order_relaxed))
        engine_.drain();
    ended.ended = true;
}

void session::end() noexcept
{
    decltype(batches_) batches;
    decltype(handles_) handles;
    {
        const std::lock_guard lock(mutex_);
        batches.swap(batches_);
        handles.swap(handles_);
    }
    batches.clear(); // waits, and so it stands before the handles that they use
    for (auto& [name, ended] : handles)
        end_calls(*ended);
}

void* session::next_name() noexcept
{
    last_name_ += 16; // no name is used twice, so that a stale one is recognized
    return reinterpret_cast<void*>(last_name_);
}

void session::require_unknown(int descriptor, dev_t device, ino_t inode) const
{
    // A descriptor that was closed without deregistration, and opened again for another file, is a new one.
    const bool known = std::any_of(handles_.begin(), handles_.end(), [&](const auto& entry) {
        const handle& other = *entry.second;
        return other.on.descriptor() == descriptor && other.device == device && other.inode == inode;
    });
    require(!known, CU_FILE_HANDLE_ALREADY_REGISTERED);
}

CUfileHandle_t session::add_handle(int descriptor)
{
    const struct stat seen = status_of(descriptor);
    const std::lock_guard lock(mutex_);
    require_unknown(descriptor, seen.st_dev, seen.st_ino);
    auto added = std::make_shared<handle>(engine_, descriptor, seen.st_dev, seen.st_ino);
    void* const name = next_name();
    handles_.emplace(name, std::move(added));
    return name;
}

void session::end_handle(CUfileHandle_t name) noexcept
{
    std::shared_ptr<handle> ended;
    {
        const std::lock_guard lock(mutex_);
        const auto found = handles_.find(name);
        if (found == handles_.end())
            return;
        ended = std::move(found->second);
        handles_.erase(found);
    }
    end_calls(*ended);
}

held_handle session::find_handle(CUfileHandle_t name) const
{
    std::shared_ptr<handle> held;
    {
        const std::shared_lock lock(mutex_);
        if (const auto found = handles_.find(name); found != handles_.end())
            held = found->second;
    }
    return held_handle(std::move(held));
}

void session::add_buffer(void* address, std::size_t bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    require(address && bytes > 0 && first + bytes >= first, CU_FILE_INVALID_VALUE);
    const std::lock_guard lock(mutex_);
    const auto next = buffers_.lower_bound(first);
    require(next == buffers_.end() || next->first != first, CU_FILE_MEMORY_ALREADY_REGISTERED);
    buffer added{bytes, std::nullopt};
    if (!withdraw_overlapped(first, bytes))
        added.registered.emplace(engine_, address, bytes);
    buffers_.emplace_hint(next, first, std::move(added));
    longest_buffer_ = std::max(longest_buffer_, bytes);
}

bool session::withdraw_overlapped(std::uintptr_t first, std::size_t bytes)
{
    bool any = false;
    for (auto each = buffers_.lower_bound(first + bytes); each != buffers_.begin();) {
        --each;
        if (each->first < first && first - each->first >= longest_buffer_)
            break;
        if (each->first + each->second.bytes > first) {
            each->second.registered.reset();
            any = true;
        }
    }
    return any;
}

void session::end_buffer(const void* address)
{
    const std::lock_guard lock(mutex_);
    require(buffers_.erase(reinterpret_cast<std::uintptr_t>(address)) == 1, CU_FILE_MEMORY_NOT_REGISTERED);
}

std::byte* session::memory_of(void* base, off_t offset, std::size_t bytes) const
{
    require(base && offset >= 0 && bytes <= static_cast<std::size_t>(PTRDIFF_MAX), CU_FILE_INVALID_VALUE);
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    const std::shared_lock lock(mutex_);
    bool registered = false;
    for (auto each = buffers_.upper_bound(first); each != buffers_.begin();) {
        --each;
        const std::size_t skipped = first - each->first;
        if (skipped >= longest_buffer_)
            break;
        if (skipped >= each->second.bytes)
            continue;
        const std::size_t left = each->second.bytes - skipped;
        if (static_cast<std::size_t>(offset) <= left && bytes <= left - static_cast<std::size_t>(offset))
            return static_cast<std::byte*>(base) + offset;
        registered = true;
    }
    require(!registered, CU_FILE_INVALID_MAPPING_RANGE);
    return static_cast<std::byte*>(base) + offset;
}

CUfileBatchHandle_t session::add_batch(unsigned capacity)
{
    auto added = std::make_shared<file_batch>(engine_, capacity);
    const std::lock_guard lock(mutex_);
    void* const name = next_name();
    batches_.emplace(name, std::move(added));
    return name;
}

void session::end_batch(CUfileBatchHandle_t name) noexcept
{
    std::shared_ptr<file_batch> ended; // destroyed without the lock: it waits
    const std::lock_guard lock(mutex_);
    if (const auto found = batches_.find(name); found != batches_.end()) {
        ended = std::move(found->second);
        batches_.erase(found);
    }
}

std::shared_ptr<file_batch> session::find_batch(CUfileBatchHandle_t name) const
{
    const std::shared_lock lock(mutex_);
    const auto found = batches_.find(name);
    require(found != batches_.end(), CU_FILE_INVALID_VALUE);
    return found->second;
}

void session::add_stream(CUstream stream)
{
    const std::lock_guard lock(mutex_);
    streams_.insert(stream);
}

void session::end_stream(CUstream stream)
{
    const std::lock_guard lock(mutex_);
    require(streams_.erase(stream) == 1, CU_FILE_INVALID_VALUE);
}

} // namespace weftio::cufile
