#include "neighbor/datagrams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <numeric>
#include <span>
#include <string_view>

#include "machine.hpp"
#include "neighbor/crowd.hpp"

namespace weftio::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t senders = 4;
constexpr std::uint32_t key = 0x11111111, message_bytes = 64, slot_bytes = 128;
constexpr std::uint32_t words_of_block = 16, blocks_of_entry = 2, send_blocks = 256;

void start(queue_pair& pair)
{
    pair.modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .queue_key = key});
    pair.modify(rdma_state::ready_to_receive);
    pair.modify(rdma_state::ready_to_send, {.send_psn = 0});
}

/// A pointer segment.
void write_pointer(std::uint32_t* to, std::uint32_t bytes, const memory_region& of, std::size_t offset)
{
    const std::uint64_t address = of.iova() + offset;
    to[0] = weftio_swap32(bytes);
    to[1] = weftio_swap32(of.lkey());
    to[2] = weftio_swap32(static_cast<std::uint32_t>(address >> 32));
    to[3] = weftio_swap32(static_cast<std::uint32_t>(address));
}

/// Has as many datagrams in flight as its ring holds.
class datagram_sender {
 public:
    datagram_sender(ground& on, const queue_pair& to)
        : done_(on.at, on.cpu, {.entries = 2 * send_blocks, .overrun = completion_overrun::ignore}),
          pair_(on.here, on.cpu, done_, done_,
                {.service = rdma_service::datagram, .send_blocks = send_blocks, .receive_entries = 0})
    {
        start(pair_);
        for (std::uint32_t at = 0; at != send_blocks; at += blocks_of_entry)
            write_entry(static_cast<std::uint32_t*>(pair_.send_ring()) + at * words_of_block, on, to);
    }
    std::uint32_t number() const { return pair_.number(); }
    /// Posts again what is done. Entries stay as they are, but for their index.
    void go_on()
    {
        if (in_flight() > send_blocks / 2)
            return;
        auto* const ring = static_cast<std::uint32_t*>(pair_.send_ring());
        for (std::uint32_t left = send_blocks - in_flight(); left != 0;
             left -= blocks_of_entry, next_ += blocks_of_entry)
            weftio_store_relaxed_u32(&ring[next_ % send_blocks * words_of_block],
                                     weftio_swap32((next_ & 0xffff) << 8 | WEFTIO_OPCODE_SEND));
        weftio_store_release_sys_u32(static_cast<std::uint32_t*>(pair_.record()) + 1, weftio_swap32(next_ & 0xffff));
    }
    bool is_done() const { return in_flight() == 0; }

 private:
    void write_entry(std::uint32_t* entry, const ground& on, const queue_pair& to) const
    {
        constexpr std::uint32_t segments = 5;
        const std::array<std::uint8_t, 6> mac = on.here.mac_of(ground::address);
        weftio_wqe_datagram_segment peer{};
        peer.queue_key_be = weftio_swap32(key);
        peer.queue_be = weftio_swap32(WEFTIO_DATAGRAM_EXTENDED | to.number());
        std::ranges::copy(mac, peer.mac);
        constexpr std::array<std::uint8_t, 16> gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 8, 1};
        std::ranges::copy(gid, peer.gid);
        entry[1] = weftio_swap32(pair_.number() << 8 | segments);
        entry[2] = weftio_swap32(WEFTIO_CE_ALWAYS);
        std::memcpy(entry + 4, &peer, sizeof peer);
        write_pointer(entry + 16, message_bytes, on.region, 0);
    }

    /// Blocks. Counted, because a poll would run the engine in inline mode, between the posts of two senders.
    std::uint32_t in_flight() const
    {
        return next_ - static_cast<std::uint32_t>(pair_.counters().done) * blocks_of_entry;
    }

    completion_queue done_; ///< nobody reads it
    queue_pair pair_;
    std::uint32_t next_ = 0; ///< blocks
};

/// Takes datagrams and posts their receives again.
class datagram_receiver {
 public:
    datagram_receiver(ground& on, std::uint32_t receives)
        : came_(on.at, on.cpu, {.entries = 2048}),
          pair_(on.here, on.cpu, came_, came_,
                {.service = rdma_service::datagram, .send_blocks = 1, .receive_entries = receives})
    {
        start(pair_);
        for (std::uint32_t each = 0; each != receives; ++each)
            write_pointer(static_cast<std::uint32_t*>(pair_.receive_ring()) + each * 4, slot_bytes, on.region,
                          mib + each * slot_bytes);
        post(receives);
    }
    const queue_pair& pair() const { return pair_; }
    /// Calls `each` with the number of the sender of each datagram.
    template <class Each>
    void take(Each&& each)
    {
        std::array<completion, 256> some;
        for (std::size_t count = some.size(); count == some.size();) {
            count = came_.poll(some);
            for (const completion& one : std::span(some).first(count))
                each(one.source_queue);
            taken_ += static_cast<std::uint32_t>(count);
            post(static_cast<std::uint32_t>(count));
        }
    }
    /// @pre no datagram is in flight, and take() has nothing left to do
    std::uint32_t lost() { return posted_ - taken_ - pair_.dump().receives_posted; }

 private:
    void post(std::uint32_t count)
    {
        posted_ += count;
        weftio_store_release_sys_u32(static_cast<std::uint32_t*>(pair_.record()), weftio_swap32(posted_ & 0xffff));
    }

    completion_queue came_;
    queue_pair pair_;
    std::uint32_t posted_ = 0, taken_ = 0;
};

struct found_shares {
    std::vector<double> taken, least, lost;
};

void measure_round(const pair_options& wanted, ground& on, std::uint32_t receives, found_shares& into)
{
    datagram_receiver to(on, receives);
    std::deque<datagram_sender> from;
    for (std::size_t each = 0; each != senders; ++each)
        from.emplace_back(on, to.pair());
    std::array<std::uint64_t, senders> counts{};
    const auto turn_and_take = [&] {
        if (wanted.inline_worker)
            on.at.turn(0);
        to.take([&](std::uint32_t number) {
            for (std::size_t each = 0; each != senders; ++each)
                counts[each] += from[each].number() == number;
        });
    };
    const auto begin = clock::now();
    std::chrono::duration<double> lasted{};
    for (; lasted.count() < wanted.seconds; lasted = clock::now() - begin) {
        std::ranges::for_each(from, &datagram_sender::go_on);
        turn_and_take();
    }
    const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
    into.taken.push_back(all / lasted.count() / 1e6);
    into.least.push_back(static_cast<double>(*std::ranges::min_element(counts)) * senders / all);
    constexpr unsigned steps_when_done = 1000;
    for (unsigned steps = 0; steps != steps_when_done; turn_and_take())
        steps = std::ranges::all_of(from, &datagram_sender::is_done) ? steps + 1 : 0;
    into.lost.push_back(to.lost());
}

struct row {
    std::string name;
    std::uint32_t receives;
};

const std::array<row, 2>& rows()
{
    static const std::array<row, 2> all{{{fmt::format("{} senders of datagrams", senders), 1024},
                                         {fmt::format("{} senders of datagrams, few receives", senders), 16}}};
    return all;
}

} // namespace

std::vector<std::string> datagram_rows()
{
    std::vector<std::string> names;
    for (const row& one : rows())
        names.push_back(one.name);
    return names;
}

void measure_datagrams(const pair_options& wanted, const device& cpu, table& into)
{
    for (const row& one : rows()) {
        if (std::string_view(one.name).find(wanted.only) == std::string_view::npos)
            continue;
        const std::string least = "least of a fair share, " + one.name;
        if (!wanted.missing.empty()) {
            into.leave_out(least, wanted.missing);
            continue;
        }
        ground on(open_for(wanted, 1), cpu, wanted.inline_worker);
        found_shares found;
        for (unsigned round = 0; round != wanted.rounds; ++round)
            measure_round(wanted, on, one.receives, found);
        into.add({.name = "taken, " + one.name, .unit = "Mdatagrams/s", .values = found.taken});
        into.add({.name = least, .unit = "share", .values = found.least});
        into.add({.name = "receives lost, " + one.name, .unit = "receives", .values = found.lost});
    }
}

} // namespace weftio::bench
