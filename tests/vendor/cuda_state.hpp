// What the calls of the stand-in share: GPUs, contexts, memory, and work that a test holds.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stand_in {

using device_pointer = unsigned long long;

inline constexpr int success = 0, invalid_value = 1, out_of_memory = 2, deinitialized = 4, invalid_device = 101,
                     invalid_context = 201, invalid_handle = 400, not_found = 500, peer_access_enabled_before = 704,
                     not_ready = 600, not_supported = 801;

/// A GPU, whose address is that of its primary context; or another context of one.
struct gpu {
    int number;
    unsigned flags = 0;    ///< of its primary context
    unsigned retained = 0; ///< how often its primary context was retained
    std::atomic<bool> reaches_other = false;
};
inline gpu gpus[] = {{0}, {1}};

struct stream {
    gpu* of;
    std::thread kernel = {};           ///< the one that the stand-in knows
    std::atomic<bool> is_busy = false; ///< with it
};

struct range {
    std::size_t bytes;
    gpu* of; ///< nullptr: memory of the host that the driver has pinned
    bool managed = false;
    unsigned long long id = 0;
    bool reserved = false, pooled = false; ///< for cuMemMap(); of cuMemAllocAsync()
    bool ordered = false;                  ///< copies of it are synchronous
};

/// Of cuMemCreate(): there as long as a handle, a mapping or a descriptor of any process is.
struct physical {
    std::size_t bytes;
    int descriptor; ///< its bytes
    unsigned long long id;
    int gpu = 0, handle_types = 0;
    bool rdma_capable = false;
    std::byte* alias; ///< where copies find them

    physical(std::size_t size, int bytes_in, unsigned long long number)
        : bytes(size), descriptor(bytes_in), id(number),
          alias(static_cast<std::byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, bytes_in, 0)))
    {}
    physical(const physical&) = delete;
    physical& operator=(const physical&) = delete;
    ~physical()
    {
        munmap(alias, bytes);
        close(descriptor);
    }
};

/// Physical memory that is mapped at reserved addresses.
struct mapping {
    std::size_t bytes;
    std::shared_ptr<physical> block;
    unsigned reached = 0; ///< a bit for each GPU that has access
};

inline std::mutex mutex;
inline std::map<std::uintptr_t, range> ranges;                          ///< by the first byte
inline std::map<std::uintptr_t, mapping> mappings;                      ///< the same
inline std::map<unsigned long long, std::shared_ptr<physical>> handles; ///< of cuMemCreate(), and others of the same
inline unsigned long long last_id = 0;
inline std::atomic<unsigned long long> ids_asked{0}, attributes_asked{0};
inline std::atomic<bool> peers{true};
inline std::atomic<int> peer_accesses{0}; ///< that cuCtxEnablePeerAccess() has given
inline std::mutex copies_mutex;
inline bool held = false;
inline std::vector<std::function<void()>> waiting; ///< copies, while they are held
/// The driver has ended with the process: each call is refused from then on.
inline std::atomic<bool> ended{false};

/// Of the calling thread. Those of all threads stay: handlers of exit() may still call.
inline std::vector<gpu*>& contexts()
{
    static auto& of_all = *new std::deque<std::vector<gpu*>>;
    static auto& guard = *new std::mutex;
    static thread_local std::vector<gpu*>* const only = [] {
        const std::lock_guard lock(guard);
        return &of_all.emplace_back();
    }();
    return *only;
}

inline gpu* current()
{
    return ended || contexts().empty() ? nullptr : contexts().back();
}

/// What NICs, and copies that are late, have on their way has arrived.
void flush();
/// Before their memory may go.
void end_copies();
/// A copy to a GPU, which is late where the test says so: whoever waits for its stream is told that it has ended.
bool is_late(device_pointer to, const void* from, std::size_t bytes);

/// Of the stream's own context, which must be current.
inline int status_of(const stream* of)
{
    return !current() ? invalid_context : of && of->of != current() ? invalid_handle : success;
}

inline constexpr std::size_t page = 4096;

inline std::size_t whole_pages(std::size_t bytes)
{
    return (bytes + page - 1) / page * page;
}

/// Whether the CPU cannot touch what is allocated from now on by its device address, as with a real GPU.
inline std::atomic<bool> hides{false};

/// The memory of all GPUs, a file without a name: copies go by an alias of its pages.
/// @pre mutex is held, but for alias() and has()
class gpu_pages {
 public:
    void* take(std::size_t bytes)
    {
        join(bytes);
        const auto back =
            std::find_if(freed_.rbegin(), freed_.rend(), [&](const auto& at) { return at.second == bytes; });
        std::byte* made = next_;
        if (back != freed_.rend()) {
            made = back->first;
            freed_.erase(std::prev(back.base()));
        } else if (next_ + bytes <= first_ + all) {
            next_ += bytes;
        } else {
            return nullptr;
        }
        return mprotect(made, bytes, hides ? PROT_NONE : PROT_READ | PROT_WRITE) == 0 ? made : nullptr;
    }
    /// Where the CPU finds the byte at an address, whosever it is.
    std::byte* alias(std::uintptr_t address) const
    {
        return has(address) ? alias_ + (address - reinterpret_cast<std::uintptr_t>(first_))
                            : reinterpret_cast<std::byte*>(address);
    }
    /// Whether it is an address of a GPU, allocated or not.
    bool has(std::uintptr_t address) const { return address - reinterpret_cast<std::uintptr_t>(first_) < all; }
    /// A descriptor that stands for these bytes, which nobody can map.
    int describe(std::size_t bytes) const
    {
        const int made = memfd_create("dmabuf", MFD_CLOEXEC);
        if (made < 0 || ftruncate(made, static_cast<off_t>(bytes)) != 0)
            return -1;
        const std::string path = "/proc/self/fd/" + std::to_string(made);
        const int unreadable = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        close(made);
        return unreadable;
    }
    /// What was mapped over these bytes is gone, and nobody can access them.
    void uncover(std::byte* at, std::size_t bytes) const
    {
        mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file_, at - first_);
    }
    /// Gives pages back to the system, and nobody can access them.
    void empty(std::byte* at, std::size_t bytes) const
    {
        fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at - first_, static_cast<off_t>(bytes));
        mprotect(at, bytes, PROT_NONE);
    }
    void forget_freed() { freed_.clear(); }
    bool give_back(void* memory, std::size_t bytes)
    {
        auto* const at = static_cast<std::byte*>(memory);
        if (at < first_ || at >= first_ + all)
            return false;
        empty(at, bytes);
        freed_.emplace_back(at, bytes);
        return true;
    }

 private:
    /// If nothing freed has that length, but two neighbors together have.
    void join(std::size_t bytes)
    {
        if (std::any_of(freed_.begin(), freed_.end(), [&](const auto& at) { return at.second == bytes; }))
            return;
        for (auto& one : freed_)
            for (auto& other : freed_)
                if (one.first + one.second == other.first && one.second + other.second == bytes) {
                    one.second = bytes;
                    std::swap(other, freed_.back());
                    freed_.pop_back();
                    return;
                }
    }

    static constexpr std::size_t all = std::size_t{4} << 30;
    /// Far below the libraries: a jump from one of them wants free memory near it.
    std::byte* map(std::uintptr_t near, int protection) const
    {
        return static_cast<std::byte*>(
            mmap(reinterpret_cast<void*>(near), all, protection, MAP_SHARED | MAP_NORESERVE, file_, 0));
    }
    static int make_file()
    {
        const int made = memfd_create("gpus", MFD_CLOEXEC);
        return ftruncate(made, all) == 0 ? made : -1;
    }

    const int file_ = make_file();
    std::byte* const first_ = map(0x7ea0'0000'0000, PROT_NONE);
    std::byte* const alias_ = map(0x7eb0'0000'0000, PROT_READ | PROT_WRITE);
    std::byte* next_ = first_;
    std::vector<std::pair<std::byte*, std::size_t>> freed_;
};

inline gpu_pages& of_gpus()
{
    static auto& only = *new gpu_pages;
    return only;
}

inline int allocate(void** made, std::size_t bytes, gpu* of, bool managed = false)
{
    if (!current())
        return invalid_context;
    const std::lock_guard lock(mutex);
    *made = of ? of_gpus().take(whole_pages(bytes)) : std::aligned_alloc(page, whole_pages(bytes));
    if (!*made)
        return out_of_memory;
    ranges[reinterpret_cast<std::uintptr_t>(*made)] = {bytes, of, managed, ++last_id};
    return success;
}

/// Needs no context.
inline int give_back(void* memory)
{
    const std::lock_guard lock(mutex);
    const auto found = ranges.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == ranges.end())
        return invalid_value;
    if (!of_gpus().give_back(memory, whole_pages(found->second.bytes)))
        std::free(memory);
    ranges.erase(found);
    return success;
}

inline int release(void* memory)
{
    return current() ? give_back(memory) : invalid_context;
}

/// Frees all memory of a context. Mappings are of none.
inline void end_context(const gpu* of)
{
    const std::lock_guard lock(mutex);
    for (auto at = ranges.begin(); at != ranges.end();)
        if (at->second.of == of && !at->second.reserved) {
            of_gpus().give_back(reinterpret_cast<void*>(at->first), whole_pages(at->second.bytes));
            at = ranges.erase(at);
        } else {
            ++at;
        }
}

/// Returns nullptr where nothing is mapped. @pre mutex is held
inline const mapping* mapping_of(std::uintptr_t address)
{
    const auto behind = mappings.upper_bound(address);
    if (behind == mappings.begin() || address - std::prev(behind)->first >= std::prev(behind)->second.bytes)
        return nullptr;
    return &std::prev(behind)->second;
}

/// Where the CPU finds the byte at an address, whosever it is.
inline std::byte* alias_of(std::uintptr_t address)
{
    const std::lock_guard lock(mutex);
    if (const mapping* const there = mapping_of(address))
        return there->block->alias + (address - std::prev(mappings.upper_bound(address))->first);
    return of_gpus().alias(address);
}

/// Whether kernels of a GPU may access what lies there: of mapped memory cuMemSetAccess() tells.
inline bool is_reached(std::uintptr_t address, int gpu)
{
    const std::lock_guard lock(mutex);
    const mapping* const there = mapping_of(address);
    return !there || (there->reached >> gpu & 1u) != 0;
}

/// Whether these bytes are the host's, or all of them allocated, and mapped, on a GPU.
inline bool is_there(std::uintptr_t address, std::size_t bytes)
{
    const std::lock_guard lock(mutex);
    if (!of_gpus().has(address))
        return true;
    const auto behind = ranges.upper_bound(address);
    if (behind == ranges.begin())
        return false;
    const auto& [first, found] = *std::prev(behind);
    if (address - first + bytes > found.bytes)
        return false;
    const mapping* const there = found.reserved ? mapping_of(address) : nullptr;
    return !found.reserved || there != nullptr;
}

/// Whether they are of a pool, of which the driver exports nothing.
inline bool is_of_pool(std::uintptr_t address)
{
    const std::lock_guard lock(mutex);
    const auto behind = ranges.upper_bound(address);
    return behind != ranges.begin() && std::prev(behind)->second.pooled;
}

/// Whether the driver knows the address: memory of a GPU, or of the host that is pinned.
inline bool is_known(std::uintptr_t address)
{
    const std::lock_guard lock(mutex);
    const auto behind = ranges.upper_bound(address);
    return behind != ranges.begin() && address - std::prev(behind)->first < std::prev(behind)->second.bytes;
}

/// At once, or when the test lets copies go on.
inline void do_in_order(std::function<void()> work)
{
    const std::lock_guard lock(copies_mutex);
    if (held)
        waiting.push_back(std::move(work));
    else
        work();
}

template <class T>
int put(void* to, T value)
{
    std::memcpy(to, &value, sizeof value);
    return success;
}

} // namespace stand_in
