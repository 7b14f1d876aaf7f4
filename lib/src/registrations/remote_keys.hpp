// Remote keys by their exact bytes and rights: a table of chains.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "registrations/node.hpp"

namespace weftio::registrations {

/// - Threads: hold() from any, without a lock. The others under the lock of the cache.
/// - Memory: a table that has become too small is kept, because a hold() may read it: half of the memory at most.
class remote_keys {
 public:
    remote_keys() { grow(64); }
    remote_keys(const remote_keys&) = delete;
    remote_keys& operator=(const remote_keys&) = delete;

    /// Holds the key of exactly these bytes with these rights; nullptr: there is none, or the table has changed
    /// meanwhile. Without the lock.
    node* hold(const range& bytes, access rights) const noexcept;
    /// The same key, under the lock and without holding it; nullptr: there is none.
    node* find(const range& bytes, access rights) const noexcept;
    /// Allocates what one add() needs. Throws std::bad_alloc.
    void prepare();
    /// @pre prepare(); the caller holds the node
    void add(node& key) noexcept;
    /// Does nothing if it is not there.
    void remove(node& key) noexcept;
    std::size_t count() const noexcept { return count_; }

 private:
    struct table {
        explicit table(std::size_t size) : mask(size - 1), chains(size) {}
        const std::size_t mask;
        std::vector<std::atomic<node*>> chains;
    };

    static std::uint64_t hash_of(const range& bytes, access rights) noexcept;
    table& newest() noexcept { return *tables_.back(); }
    void grow(std::size_t size);
    static void push(table& into, node& key) noexcept;

    std::vector<std::unique_ptr<table>> tables_;
    std::atomic<const table*> present_{nullptr};
    std::size_t count_ = 0;
};

} // namespace weftio::registrations
