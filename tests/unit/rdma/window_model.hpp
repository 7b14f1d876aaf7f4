// Memory windows as docs/formats.md ("Windows") describes them, in plain C++: what each key lets whom do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weftio/access.hpp"
#include "weftio/refusal.hpp"

namespace weftio::test {

class window_model {
 public:
    struct user {
        unsigned queue = 0; ///< of no other queue pair
        unsigned domain = 0;
    };
    struct region {
        std::uint32_t key = 0; ///< 0: there is none
        std::uint64_t base = 0, bytes = 0;
        std::size_t at = 0; ///< of its first byte, in the memory
        access rights = access::none;
        unsigned domain = 0;
    };
    struct window {
        window_type type = window_type::type_2;
        unsigned domain = 0;
        std::uint32_t key = 0; ///< present or last one
        bool bound = false;
        const region* of = nullptr;
        std::uint64_t first = 0, bytes = 0; ///< those inside the region
        access rights = access::none;
        unsigned queue = 0; ///< that has bound it
    };
    struct bind {
        window_type type = window_type::type_2;
        std::uint32_t window = 0, next = 0, region = 0;
        std::uint64_t address = 0, bytes = 0;
        access rights = access::none;
        bool strict = true;
    };
    struct request {
        std::uint32_t key = 0;
        std::uint64_t address = 0, bytes = 0;
        access right = access::none;
    };

    explicit window_model(std::size_t most_regions) : regions(most_regions) {}

    refusal bind_window(const user& by, const bind& what);
    refusal may_invalidate(const user& by, std::uint32_t key) const;
    refusal invalidate(const user& by, std::uint32_t key)
    {
        const refusal why = may_invalidate(by, key);
        if (why == refusal::none)
            windows.at(key >> 8).bound = false;
        return why;
    }
    /// What the peer of a queue pair is told. @param[out] at  where the bytes are, in the memory
    refusal access_by(const user& by, const request& what, std::size_t& at) const;
    /// What an entry of a queue pair is told that names its own memory by this key of no region of its own.
    refusal local_use(std::uint32_t key) const;

    const region* find_region(std::uint32_t key) const
    {
        for (const region& each : regions)
            if (key != 0 && each.key == key)
                return &each;
        return nullptr;
    }
    unsigned windows_of(const region& of) const
    {
        unsigned count = 0;
        for (const auto& [index, each] : windows)
            count += each.bound && each.of == &of;
        return count;
    }
    void free_windows_of(const region& of)
    {
        for (auto& [index, each] : windows)
            each.bound = each.bound && each.of != &of;
    }

    std::vector<region> regions;             ///< never moves
    std::map<std::uint32_t, window> windows; ///< by index of their keys

 private:
    static bool gives(access rights, access right) { return (rights & right) == right; }
    static bool holds(std::uint64_t base, std::uint64_t all, std::uint64_t address, std::uint64_t bytes)
    {
        return address >= base && bytes <= all && address - base <= all - bytes;
    }
    refusal may_bind(const user& by, const window& to, const bind& what) const;
    refusal may_bind_to(const user& by, const region* to, const bind& what) const;
    static void lend(window& by, const region& of, const bind& what);
    static refusal lacks(access right)
    {
        return right == access::remote_write  ? refusal::no_remote_write
               : right == access::remote_read ? refusal::no_remote_read
                                              : refusal::no_remote_atomic;
    }
};

inline refusal window_model::may_bind(const user& by, const window& to, const bind& what) const
{
    const bool type_2 = what.type == window_type::type_2;
    if (to.type != what.type)
        return refusal::wrong_window_type;
    if (to.domain != by.domain)
        return refusal::window_domain;
    if (to.bound && type_2)
        return refusal::window_not_free;
    if (to.bound && to.key != what.window)
        return refusal::wrong_window_key;
    return what.bytes == 0 && type_2 ? refusal::window_without_bytes : refusal::none;
}

inline refusal window_model::may_bind_to(const user& by, const region* to, const bind& what) const
{
    if (to == nullptr)
        return refusal::window_region;
    if (to->domain != by.domain)
        return refusal::window_domain;
    if (!gives(to->rights, access::bind))
        return refusal::no_bind;
    if (to->base == 0)
        return refusal::window_zero_based;
    const bool changes = gives(what.rights, access::remote_write) || gives(what.rights, access::remote_atomic);
    if (changes && !gives(to->rights, access::local_write))
        return refusal::window_local_write;
    return what.strict && !holds(to->base, to->bytes, what.address, what.bytes) ? refusal::window_outside_region
                                                                                : refusal::none;
}

/// The bytes that both have, counted one by one where the range wraps or leaves the region.
inline void window_model::lend(window& by, const region& of, const bind& what)
{
    by.of = &of;
    by.bytes = 0;
    for (std::uint64_t each = 0; each != of.bytes; ++each) {
        const std::uint64_t address = of.base + each;
        if (address < what.address || address - what.address >= what.bytes)
            continue;
        if (by.bytes++ == 0)
            by.first = address;
    }
    const access known = access::remote_write | access::remote_read;
    by.rights = what.rights & (what.strict ? known | access::remote_atomic : known);
}

inline refusal window_model::bind_window(const user& by, const bind& what)
{
    const auto found = windows.find(what.window >> 8);
    if (found == windows.end())
        return refusal::not_a_window;
    window& to = found->second;
    if (const refusal why = may_bind(by, to, what); why != refusal::none)
        return why;
    const region* const of = find_region(what.region);
    if (what.bytes != 0) {
        if (const refusal why = may_bind_to(by, of, what); why != refusal::none)
            return why;
        lend(to, *of, what);
    }
    to.bound = what.bytes != 0;
    to.key = (what.window & ~0xffu) | (what.next & 0xff);
    to.queue = by.queue;
    return refusal::none;
}

inline refusal window_model::may_invalidate(const user& by, std::uint32_t key) const
{
    const auto found = windows.find(key >> 8);
    if (found == windows.end())
        return refusal::not_a_window;
    const window& at = found->second;
    if (at.type != window_type::type_2)
        return refusal::wrong_window_type;
    if (at.domain != by.domain)
        return refusal::window_domain;
    if (!at.bound)
        return refusal::window_free;
    if (at.key != key)
        return refusal::wrong_window_key;
    return at.queue == by.queue ? refusal::none : refusal::window_of_other_queue;
}

inline refusal window_model::access_by(const user& by, const request& what, std::size_t& at) const
{
    if (what.bytes == 0)
        return refusal::none;
    const region* of = find_region(what.key);
    const auto found = windows.find(what.key >> 8);
    const window* const by_window = found == windows.end() ? nullptr : &found->second;
    if (of == nullptr && by_window == nullptr)
        return refusal::unknown_key;
    if (by_window != nullptr && (!by_window->bound || by_window->key != what.key))
        return refusal::window_free;
    if ((by_window ? by_window->domain : of->domain) != by.domain)
        return refusal::other_domain;
    if (by_window && by_window->type == window_type::type_2 && by_window->queue != by.queue)
        return refusal::window_of_other_queue;
    if (!gives(by_window ? by_window->rights : of->rights, what.right))
        return by_window && what.right == access::remote_atomic ? refusal::window_atomic : lacks(what.right);
    if (!(by_window ? holds(by_window->first, by_window->bytes, what.address, what.bytes)
                    : holds(of->base, of->bytes, what.address, what.bytes)))
        return refusal::outside_region;
    of = by_window ? by_window->of : of;
    at = of->at + (what.address - of->base);
    return what.right == access::remote_atomic && at % 8 != 0 ? refusal::misaligned_word : refusal::none;
}

inline refusal window_model::local_use(std::uint32_t key) const
{
    const auto found = windows.find(key >> 8);
    if (found == windows.end())
        return refusal::unknown_key;
    return found->second.bound && found->second.key == key ? refusal::window_as_lkey : refusal::window_free;
}

} // namespace weftio::test
