#include "storage/named_files.hpp"

#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "storage/open_file.hpp"

namespace weftio::storage {

void named_files::enter(open_file& file)
{
    named_file made{.descriptor = file.descriptor(),
                    .name = file.name_of(file.descriptor()),
                    .use = std::make_shared<const char>()};
    if (file.direct()) {
        made.direct = &file;
        made.offset_align = file.offset_align();
        made.memory_align = file.memory_align();
    }
    const std::lock_guard lock(mutex_);
    files_.insert_or_assign(file.key(), std::move(made));
}

bool named_files::find(std::uint32_t key, named_file& out) const noexcept
{
    const std::shared_lock lock(mutex_);
    const auto found = files_.find(key);
    if (found == files_.end())
        return false;
    out = found->second;
    return true;
}

void named_files::leave(std::uint32_t key, const std::weak_ptr<file_user>& user) noexcept
{
    std::shared_ptr<const void> use;
    {
        const std::lock_guard lock(mutex_);
        const auto found = files_.find(key);
        if (found == files_.end())
            return;
        use = std::move(found->second.use);
        files_.erase(found);
    }
    while (use.use_count() > 1) {
        if (const std::shared_ptr<file_user> who = user.lock())
            who->collect();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

} // namespace weftio::storage
