// Leftovers: memory that others may still read after its port has closed.
#pragma once

#include <list>
#include <memory>

namespace weftio::dpdk {

/// Memory of a closed port, parts of which a driver, or a receiver of its mbufs, may still hold. The destructor frees
/// it.
class leftover {
 public:
    leftover() = default;
    leftover(const leftover&) = delete;
    leftover& operator=(const leftover&) = delete;
    virtual ~leftover() = default;
    /// Whether all of it has been given back.
    virtual bool returned() const noexcept = 0;
};

/// A leftover travels as a list of one element, because splicing it into another list allocates nothing.
using leftover_list = std::list<std::unique_ptr<leftover>>;

/// Keeps the memory until all of it has been given back, if need be as long as the process lives. Any thread.
void keep_until_returned(leftover_list&& one) noexcept;
/// Frees the leftovers that have been given back. Any thread.
void free_returned_leftovers() noexcept;

} // namespace weftio::dpdk
