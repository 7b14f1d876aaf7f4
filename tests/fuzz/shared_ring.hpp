// The program's side of a shared receive ring: honest at first, until the input makes it lie about links or counts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "expect.hpp"
#include "guarded.hpp"
#include "nic/soft/rdma/linked_receives.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

/// The ring ends at a guard page; the NIC's mapping of it and of its record is read-only.
class shared_ring {
 public:
    static constexpr std::uint32_t depth = 16, segments = 4, words_of_entry = segments * 4;

    nic::soft::shared_rx_ring begin_again()
    {
        free_.clear();
        posted_ = {};
        count_ = 0;
        lied_ = false;
        set_record(0);
        for (std::uint32_t index = 0; index != depth; ++index) {
            link(index, (index + 1) % depth);
            free_.push_back(index);
        }
        return {.words = words(ring_.nic()), .dbrec = record(record_.nic()), .depth = depth, .segments = segments};
    }
    /// Posts the next free entry, but never the last one. @param pieces  of memory; fewer than fit end with the invalid
    /// key
    bool post(std::span<const named_region> pieces)
    {
        if (free_.size() == 1)
            return false;
        const std::uint32_t index = free_.front();
        std::uint32_t* const entry = words(ring_.kernel()) + index * words_of_entry;
        for (std::uint32_t each = 0; each + 1 != segments; ++each)
            write(entry + (each + 1) * 4,
                  each < pieces.size() ? pieces[each] : named_region{.key = WEFTIO_LKEY_INVALID});
        free_.pop_front();
        posted_[index] = true;
        set_record(++count_);
        return true;
    }
    /// The NIC has completed an entry.
    void complete(std::uint32_t index)
    {
        expect(index < depth, "a completion names an entry of the ring");
        expect(lied_ || posted_[index], "what completes has been posted, and not completed since");
        if (!posted_[index])
            return;
        posted_[index] = false;
        if (!lied_)
            link(free_.back(), index);
        free_.push_back(index);
    }
    /// Any successor of an entry, and any total of posted entries.
    void lie_about_links(std::uint32_t from, std::uint32_t to)
    {
        lied_ = true;
        link(from % depth, to);
    }
    void lie_about_count(std::uint32_t more)
    {
        lied_ = true;
        set_record(count_ += more);
    }
    /// Any word of any entry behind its link, while the NIC may use it.
    void scribble(std::uint32_t at, std::uint32_t value)
    {
        const std::uint32_t word = at % (depth * words_of_entry);
        lied_ = lied_ || word % words_of_entry == 0;
        weftio_store_relaxed_u32(words(ring_.kernel()) + word, value);
    }
    bool has_lied() const { return lied_; }
    std::uint32_t posts() const { return count_; }

 private:
    static std::uint32_t* words(std::byte* base)
    {
        return reinterpret_cast<std::uint32_t*>(base + guarded::page) - std::size_t{depth} * words_of_entry;
    }
    static std::uint32_t* record(std::byte* base) { return reinterpret_cast<std::uint32_t*>(base + guarded::page) - 1; }
    static void write(std::uint32_t* to, const named_region& piece)
    {
        const std::array<std::uint32_t, 4> words{static_cast<std::uint32_t>(piece.bytes), piece.key,
                                                 static_cast<std::uint32_t>(piece.base >> 32),
                                                 static_cast<std::uint32_t>(piece.base)};
        for (std::size_t at = 0; at != words.size(); ++at)
            weftio_store_relaxed_u32(to + at, weftio_swap32(words[at]));
    }
    void link(std::uint32_t from, std::uint32_t to)
    {
        weftio_store_relaxed_u32(words(ring_.kernel()) + from * words_of_entry, weftio_swap32(to));
    }
    void set_record(std::uint32_t count)
    {
        weftio_store_release_sys_u32(record(record_.kernel()), weftio_swap32(count & 0xffff));
    }

    guarded ring_{guarded::page}, record_{guarded::page};
    std::deque<std::uint32_t> free_;
    std::array<bool, depth> posted_{};
    std::uint32_t count_ = 0;
    bool lied_ = false;
};

} // namespace weftio::fuzz
