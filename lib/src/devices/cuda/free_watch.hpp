// Frees of GPU memory, seen before the driver acts, whoever calls it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "devices/cuda/driver.hpp"

namespace weftio::devices::cuda {

/// Told on the thread that frees, which may have locks of the program. It must not wait for the GPU, nor for a thread
/// that frees.
class free_listener {
 public:
    /// The allocation that begins there, if one does.
    virtual void freed(std::uintptr_t begin) noexcept = 0;
    virtual void unmapped(std::uintptr_t begin, std::size_t bytes) noexcept = 0;
    virtual void context_ended(context which) noexcept = 0;
    /// The primary context of a GPU.
    virtual void primary_ended(device_number of) noexcept = 0;

 protected:
    ~free_listener() = default;
};

class free_jumps;

/// What a call of the driver may end.
struct ending {
    enum class kind : std::uint8_t { memory, mapping, context, primary, release, unseen };
    kind what = kind::unseen;
    std::uintptr_t begin = 0; ///< of memory or a mapping
    std::size_t bytes = 0;    ///< of a mapping
    context of = nullptr;
    device_number gpu = 0; ///< of a primary context, or of a release of one, which ends it if it was the last
};

/// Puts jumps at the entries of the driver's functions while anybody listens: also those that cuGetProcAddress() gives,
/// of each version and for each kind of default stream. Who has such a pointer already, is preloaded before us or has
/// CUDA's runtime linked statically comes there, too.
///
/// Counts what may end memory. What counters promise: memory that was found after `begun` was read, while nothing was
/// under way, is there until a listener was told of it, or `unseen` is another one.
///
/// - Threads: any.
class free_watch {
 public:
    /// Of one listener.
    class subscription;

    static free_watch& instance();

    /// From its return on, the listener hears of all that begins.
    /// @throws weftio::error errc::not_supported no jump can be put there, or the driver lacks a function;
    ///         errc::permission_denied
    std::shared_ptr<subscription> subscribe(free_listener& who);
    /// When it returns, nobody is in the listener, and it hears nothing more. Calls of the driver may not have ended.
    /// Do not call it in a listener's function.
    void unsubscribe(const std::shared_ptr<subscription>& ended) noexcept;

    /// How many calls have begun that may end memory; nothing: one is under way.
    std::optional<std::uint64_t> quiet() const noexcept
    {
        const std::uint64_t ended = ended_.load(std::memory_order_acquire);
        const std::uint64_t begun = begun_.load(std::memory_order_seq_cst);
        return begun == ended ? std::optional(begun) : std::nullopt;
    }
    bool is_still(std::uint64_t begun) const noexcept { return begun_.load(std::memory_order_seq_cst) == begun; }
    /// How many calls may have ended memory of which nobody could tell.
    std::uint64_t unseen() const noexcept { return unseen_.load(std::memory_order_acquire); }

    /// A call of the driver, from before it acts until it has.
    class call;

 private:
    using listeners = std::vector<std::shared_ptr<subscription>>;

    bool tell(const ending& what) noexcept;
    std::shared_ptr<const listeners> present() const noexcept;

    std::mutex changes_; ///< guards jumps_, and changes of listeners_
    std::unique_ptr<free_jumps> jumps_;
    mutable std::mutex mutex_; ///< guards listeners_; held for a copy only
    std::shared_ptr<const listeners> listeners_ = std::make_shared<const listeners>();
    std::atomic<std::uint64_t> begun_{0}, ended_{0}, unseen_{0};
};

class free_watch::call {
 public:
    explicit call(const ending& what) noexcept;
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    ~call();

 private:
    const ending what_;
    bool told_ = true;
};

/// Memory of a GPU that Weftio is about to free, from before a lock is taken that an engine may wait for. While it
/// lives, the thread's calls of the driver that free the memory are not told again.
class freeing {
 public:
    explicit freeing(const void* begin) noexcept;
    freeing(const freeing&) = delete;
    freeing& operator=(const freeing&) = delete;
    ~freeing();

 private:
    const free_watch::call call_;
    const std::uintptr_t outer_;
};

} // namespace weftio::devices::cuda
