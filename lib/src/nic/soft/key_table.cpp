#include "nic/soft/key_table.hpp"

#include "weftio/error.hpp"

namespace weftio::nic {

std::uint32_t key_table::add(const key_entry& entry)
{
    std::uint32_t index = 0;
    if (first_free_ != none_) {
        index = first_free_;
        first_free_ = slots_[index].next_free;
    } else if (slots_.size() < (1u << 24)) {
        index = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        throw error(errc::out_of_memory,
                    "weftio: memory region: all 16777216 keys of this port are in use; free regions first");
    }
    slots_[index].entry = entry;
    slots_[index].used = true;
    return index << 8 | slots_[index].variant;
}

void key_table::remove(std::uint32_t key) noexcept
{
    if (!find(key))
        return;
    slot& gone = slots_[key >> 8];
    gone.used = false;
    ++gone.variant;
    ++removals_;
    gone.next_free = none_;
    (first_free_ == none_ ? first_free_ : slots_[last_free_].next_free) = key >> 8;
    last_free_ = key >> 8;
}

} // namespace weftio::nic
