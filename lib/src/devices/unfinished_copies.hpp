// Copies by copy engines that are under way when nobody waits for them.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace weftio::devices {

/// Of one memory_block: what engines had begun by a key of it when the key was withdrawn.
///
/// - Threads: any.
class unfinished_copies {
 public:
    /// @param ended  says whether copies have ended; any thread may call it, and it neither blocks nor throws. It keeps
    ///               what it asks alive.
    /// Throws std::bad_alloc.
    void add(std::function<bool()> ended)
    {
        const std::scoped_lock lock(mutex_);
        parts_.push_back(std::move(ended));
    }
    /// Whether all of them have ended. Blocks for no copy.
    bool ended() noexcept
    {
        const std::scoped_lock lock(mutex_);
        std::erase_if(parts_, [](const std::function<bool()>& part) { return part(); });
        return parts_.empty();
    }

 private:
    std::mutex mutex_;
    std::vector<std::function<bool()>> parts_;
};

} // namespace weftio::devices
