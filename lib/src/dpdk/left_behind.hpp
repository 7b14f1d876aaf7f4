// What somebody may still read when its port has gone.
#pragma once

#include <list>
#include <memory>

namespace weftio::nic {

/// Memory whose port has closed. A driver, or whoever received our mbufs, may hold some of it. Its destructor frees it.
class leftover {
 public:
    leftover() = default;
    leftover(const leftover&) = delete;
    leftover& operator=(const leftover&) = delete;
    virtual ~leftover() = default;
    /// Whether nobody holds any of it.
    virtual bool returned() const noexcept = 0;
};

/// One element. A list, because moving its element to another needs no memory.
using leftover_place = std::list<std::unique_ptr<leftover>>;

/// Keeps it until it has returned, if need be as long as the process lives. Any thread.
void leave_behind(leftover_place&& one) noexcept;
/// Frees what has returned. Any thread.
void free_returned_leftovers() noexcept;

} // namespace weftio::nic
