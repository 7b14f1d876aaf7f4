// Any binds and invalidations of memory windows in a send ring, beside peers that access memory by any key.
//
// The input is a row of operations: UMR entries of two and three blocks that are right but for one field, blocks of any
// bits, requests of two peers, SENDs with invalidate, regions that close and open, windows that end. The ring lies
// between guard pages, and so does the memory of regions. After each operation the windows are compared with those
// before it.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "expect.hpp"
#include "guarded.hpp"
#include "keys/key_table.hpp"
#include "nic/soft/rdma/rdma_sends.hpp"
#include "nic/soft/rdma/staged_pair.hpp"
#include "raw_entry.hpp"
#include "roce/key_memory.hpp"

namespace weftio::fuzz {

namespace {

using keys::window_user;
using keys::window_view;

constexpr std::uint32_t depth = 64, words_per_block = 16, queue_number = 0x1234;
constexpr std::uint64_t base = 0x7000'0000'1000, region_bytes = 2 * guarded::page;
constexpr std::size_t region_count = 4, window_count = 5;

/// What happened in all inputs.
struct tally {
    ~tally()
    {
        std::fprintf(stderr, "windows: %llu bound, %llu invalidated, %llu by peers, %llu accesses, %llu refusals\n",
                     bound, invalidated, by_peers, accesses, refusals);
    }
    unsigned long long bound = 0, invalidated = 0, by_peers = 0, accesses = 0, refusals = 0;
};
tally& all()
{
    static tally made;
    return made;
}

/// A queue pair of a NIC of its own key table, and one more that has bound nothing.
class windows_of_a_nic {
 public:
    windows_of_a_nic()
    {
        constexpr std::array rights{access::local_write | access::bind, access::bind, access::local_write,
                                    access::local_write | access::bind | access::remote_write};
        for (std::size_t each = 0; each != region_count; ++each) {
            regions_[each] = table_.add({.cpu = memory().kernel(),
                                         .base = each == 3 ? 0 : base,
                                         .bytes = region_bytes,
                                         .rights = rights[each]});
            keys_.grant(regions_[each], true);
        }
        for (std::size_t each = 0; each != window_count; ++each)
            windows_[each] = make(each);
    }
    ~windows_of_a_nic()
    {
        for (const std::uint32_t window : windows_)
            end(window);
        for (const std::uint32_t region : regions_) {
            expect(table_.windows_of(region) == 0, "no window is left");
            table_.withdraw(region);
            keys_.forget(region);
            table_.release(region);
        }
    }

    void execute_all(numbers& in)
    {
        for (int operations = 0; operations != 200 && !in.empty(); ++operations) {
            operate(in);
            check_counts();
        }
    }

 private:
    static const guarded& memory()
    {
        static const guarded made(region_bytes);
        return made;
    }
    static window_type type_of(std::size_t which) { return which < 2 ? window_type::type_1 : window_type::type_2; }
    static keys::key_table& the_table()
    {
        static keys::key_table made{keys::key_table::all_indices, 0}; // an index is used again at once
        return made;
    }
    static keys::nic_keys& the_nic()
    {
        static keys::nic_keys made{"fuzzed", the_table()};
        return made;
    }
    /// The last one is of another domain.
    std::uint32_t make(std::size_t which)
    {
        return keys_.add_window(type_of(which), which == window_count - 1 ? strangers_ : protection_domain{});
    }
    void end(std::uint32_t window)
    {
        table_.withdraw_window(window);
        keys_.forget(window);
        table_.release_window(window);
    }
    window_view seen(std::size_t which) const { return table_.window(windows_[which]); }

    void operate(numbers& in)
    {
        const std::uint8_t choice = in.byte();
        const std::size_t which = choice / 16 % window_count;
        switch (choice % 16) {
            case 0: raw_blocks(in); break;
            case 1: committed_ = in.half(); break; // more than is there, mostly
            case 2: return close_region(choice / 16 % region_count);
            case 3: {
                end(windows_[which]);
                windows_[which] = make(which);
                return;
            }
            case 4: return invalidate_by_peer(which, in);
            case 5:
            case 6:
            case 7: return access_by_peer(which, in);
            case 8:
            case 9:
            case 10:
            case 11: without_memory(which, in); break;
            default: bind(which, in);
        }
        run();
    }

    void put(const std::uint32_t* words, std::uint32_t count)
    {
        auto* const slots = reinterpret_cast<std::uint32_t*>(ring_.kernel());
        for (std::uint32_t word = 0; word != count; ++word)
            slots[(committed_ * words_per_block + word) & (depth * words_per_block - 1)] = words[word];
        committed_ += (count + words_per_block - 1) / words_per_block;
    }
    void append(raw_entry& entry, std::size_t which, numbers& in)
    {
        const std::uint32_t words = entry.segments * 4;
        entry.control(WEFTIO_OPCODE_UMR, committed_, queue_number, WEFTIO_CE_ALWAYS);
        entry.words[3] = weftio_swap32(seen(which).key);
        entry.mutate(in);
        put(entry.words.data(), words);
    }
    void bind(std::size_t which, numbers& in)
    {
        const std::uint8_t choice = in.byte();
        const std::uint64_t at = in.half() % region_bytes, bytes = 1 + in.half() % (region_bytes - at);
        const std::size_t region = choice % 8 == 7 ? in.byte() % region_count : 0;
        raw_entry entry;
        entry.bind(type_of(which) == window_type::type_2, in.byte(), choice & 0x70u, queue_number,
                   {.key = regions_[region], .base = base + at, .bytes = bytes});
        append(entry, which, in);
    }
    void without_memory(std::size_t which, numbers& in)
    {
        raw_entry entry;
        entry.free_window(type_of(which) == window_type::type_2, in.byte(), queue_number);
        append(entry, which, in);
    }
    void raw_blocks(numbers& in)
    {
        std::array<std::uint32_t, words_per_block> block;
        for (std::uint32_t& word : block)
            word = in.word();
        put(block.data(), words_per_block);
    }

    /// The ring is read and executed, as a requester does it.
    void run()
    {
        weftio_store_release_sys_u32(record(record_.kernel()), weftio_swap32(committed_ & 0xffff));
        sends_.read_doorbell_record();
        roce::message entry;
        while (!sends_.failed() && sends_.read(sends_.next(), entry))
            execute(entry);
        if (sends_.failed())
            begin_again();
        sends_.publish();
    }
    void execute(roce::message& entry)
    {
        entry.entry = sends_.next() - entry.blocks;
        refusal why = std::exchange(entry.refused, refusal::none);
        if (why == refusal::none && entry.is_local()) {
            const auto before = views();
            why = sends_.execute(entry);
            if (entry.opcode == WEFTIO_OPCODE_UMR)
                check_change(before, entry.immediate_or_key, why);
        }
        if (why != refusal::none) {
            expect(std::strcmp(explain(why), "unknown reason") != 0, "a refusal has words");
            ++all().refusals;
        }
        expect(sends_.in_force(), "one engine waits for no other");
        sends_.end(entry, why);
    }
    void begin_again()
    {
        sends_.flush_unread();
        sends_.publish();
        committed_ = 0;
        weftio_store_release_sys_u32(record(record_.kernel()), 0);
        sends_.begin_again_at_zero(ring());
        for (nic::soft::send_event event; sends_.events().get(event);) {
        }
    }

    std::array<window_view, window_count> views() const
    {
        std::array<window_view, window_count> seen_now;
        for (std::size_t each = 0; each != window_count; ++each)
            seen_now[each] = seen(each);
        return seen_now;
    }
    /// An entry changes the window that it names, or nothing.
    void check_change(const std::array<window_view, window_count>& before, std::uint32_t key, refusal why)
    {
        for (std::size_t each = 0; each != window_count; ++each) {
            const window_view &old = before[each], now = seen(each);
            const bool same =
                old.key == now.key && old.valid == now.valid && old.region == now.region && old.user == now.user;
            expect(same || (why == refusal::none && old.key >> 8 == key >> 8), "nothing else changes");
            if (why != refusal::none || old.key >> 8 != key >> 8)
                continue;
            if (now.valid) {
                ++all().bound;
                expect(now.domain == protection_domain{}, "it is of the queue's domain");
                expect(now.region == regions_[0] || now.region == regions_[1], "its region may have windows");
                expect(now.user == (now.type == window_type::type_2 ? us_.number : 0), "it is its queue's");
                expect(now.type == window_type::type_1 || !old.valid, "a window of type 2 was free");
            } else if (old.valid) {
                ++all().invalidated;
                expect(old.user == (old.type == window_type::type_2 ? us_.number : 0), "it was its queue's");
            }
        }
    }
    void check_counts() const
    {
        for (const std::uint32_t region : regions_) {
            std::uint32_t bound = 0;
            for (std::size_t each = 0; each != window_count; ++each)
                bound += seen(each).valid && seen(each).region == region;
            expect(table_.windows_of(region) == bound, "a region knows how many windows it has");
        }
        std::uint32_t of_2a = 0;
        for (std::size_t each = 0; each != window_count; ++each)
            of_2a += seen(each).valid && seen(each).type == window_type::type_2;
        expect(held_.count() == of_2a, "a queue pair knows how many windows of type 2A it has bound");
    }

    /// Of the queue's own peer, or of another's.
    void access_by_peer(std::size_t which, numbers& in)
    {
        const std::uint8_t choice = in.byte();
        const bool ours = (choice & 1) != 0;
        roce::key_memory& memory_of_queue = ours ? ours_ : others_;
        const window_view window = seen(which);
        const std::uint32_t key = window.key ^ (choice / 2 % 8 == 7 ? in.byte() : 0u); // another key of the same window
        const roce::remote_range range{key, base + in.half() % (region_bytes + 64), 1 + in.half() % 64u};
        std::array<std::uint8_t, 64> bytes{};
        const bool writes = (choice & 0x80) != 0;
        std::span<const std::uint8_t> found;
        const refusal why = writes ? memory_of_queue.write(range, std::span(bytes).first(range.bytes))
                                   : memory_of_queue.read(range, found);
        if (why != refusal::none)
            return;
        ++all().accesses;
        expect(writes || found.size() == range.bytes, "all bytes are read");
        for (const std::uint8_t byte : found)
            expect(byte == 0, "they are those of the region");
        expect(window.valid && window.key == key, "the window was bound, by this key");
        expect(window.type == window_type::type_1 || ours, "the peer is that of its queue");
    }
    void invalidate_by_peer(std::size_t which, numbers& in)
    {
        const std::uint8_t choice = in.byte();
        const bool ours = choice % 4 != 0;
        roce::key_memory& memory_of_queue = ours ? ours_ : others_;
        const window_view named = seen(which);
        const std::uint32_t key = choice % 8 == 7 ? in.word() : named.key;
        if (memory_of_queue.may_invalidate(key) != refusal::none)
            return;
        const auto all_of_them = views();
        const auto found = std::ranges::find(all_of_them, key, &window_view::key);
        expect(found != all_of_them.end(), "the key is that of a window");
        const window_view window = *found;
        expect(ours && window.valid && window.type == window_type::type_2, "only its queue's peer returns a window");
        memory_of_queue.invalidate(key);
        expect(memory_of_queue.may_invalidate(key) == refusal::window_free, "it is free then");
        ++all().by_peers;
    }
    /// As the host changes a region: only without windows, or it frees them.
    void close_region(std::size_t which)
    {
        if (table_.close_to_windows(regions_[which]) != 0)
            table_.free_windows_of(regions_[which]);
        expect(table_.windows_of(regions_[which]) == 0, "a closed region has no window");
        table_.open_to_windows(regions_[which]);
    }

    static std::uint32_t* record(std::byte* at)
    {
        return reinterpret_cast<std::uint32_t*>(at + guarded::page - sizeof(std::uint32_t));
    }
    nic::soft::tx_ring ring()
    {
        return {
            .entries = {.words = reinterpret_cast<std::uint32_t*>(ring_.nic()), .depth = depth, .queue = queue_number},
            .dbrec = record(record_.nic()),
            .completion = &completion_};
    }

    static const guarded& ring_memory()
    {
        static const guarded made(depth * words_per_block * sizeof(std::uint32_t));
        return made;
    }
    static const guarded& record_memory()
    {
        static const guarded made(guarded::page);
        return made;
    }

    const guarded &ring_ = ring_memory(), &record_ = record_memory();
    weftio_cqe completion_{};
    std::uint32_t committed_ = 0;
    keys::key_table& table_ = the_table();
    keys::nic_keys& keys_ = the_nic();
    const protection_domain strangers_ = protection_domain::make();
    const window_user us_{.number = window_user::next_number(0, true)}, another_{.number = window_user::next_number()};
    keys::held_windows held_{table_, us_.number};
    std::array<std::uint32_t, region_count> regions_{};
    std::array<std::uint32_t, window_count> windows_{};
    nic::soft::turn_rounds rounds_;
    nic::soft::staged_copies copies_; // none
    nic::soft::roce_sender sender_{{}};
    nic::soft::staged_pair staged_{copies_, sender_};
    nic::soft::rdma_sends sends_{ring(), rdma_service::reliable, keys_, {us_, &held_}, rounds_, staged_};
    roce::key_memory ours_{keys_, us_, &held_}, others_{keys_, another_};
};

} // namespace

} // namespace weftio::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    weftio::fuzz::all();
    weftio::fuzz::numbers in(data, bytes);
    weftio::fuzz::windows_of_a_nic nic;
    nic.execute_all(in);
    return 0;
}
