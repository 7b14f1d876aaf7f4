#include "wires/member.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace weftio::wires {

namespace {

constexpr std::size_t least_frame_bytes = 14;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t check_every_ns = second_ns / 100; ///< at receivers
constexpr std::uint64_t patience_ns = second_ns / 10;     ///< with a receiver that consumes nothing
constexpr std::uint64_t memory_again_ns = second_ns;
constexpr unsigned most_in_a_row = 16; ///< frames of a channel before the next channel's

constexpr std::uint64_t bit(unsigned slot) noexcept
{
    return std::uint64_t{1} << slot;
}

template <class Do>
void for_each_bit(std::uint64_t bits, Do&& what) noexcept
{
    for (; bits != 0; bits &= bits - 1)
        what(static_cast<unsigned>(std::countr_zero(bits)));
}

bool is_for_several(std::span<const std::uint8_t> frame) noexcept
{
    return (frame[0] & 1) != 0;
}

} // namespace

member::member(std::string who, std::string_view name, const std::string& folder)
    : who_(std::move(who)), file_(who_, name, folder), own_(file_.shared().slots[file_.slot()]),
      life_(own_.life.load(std::memory_order_relaxed)), address_(mac_of(file_.slot(), life_))
{}

member::~member()
{
    for (const receiver& each : to_)
        if (each.channel)
            ::munmap(each.channel.ring(), ring_bytes);
    for (const channel_in& each : from_)
        if (each)
            ::munmap(each.ring(), ring_bytes);
}

member::outcome member::send(std::span<const std::uint8_t> frame) noexcept
{
    if (frame.size() >= least_frame_bytes && frame.size() <= most_frame_bytes) {
        if (is_for_several(frame))
            return send_to_all(frame);
        if (const unsigned slot = frame[5]; slot < most_members)
            return send_to(slot, frame);
    }
    dropped_.add(1);
    return outcome::dropped;
}

bool member::is_unread(const mac& to, std::uint64_t& sent) noexcept
{
    receiver* const at = find(to);
    if (!at || !at->channel)
        return false;
    check_receivers();
    if (sent == 0)
        sent = at->channel.published();
    return !at->dead && at->channel.consumed() < sent;
}

member::outcome member::send_to(unsigned slot, std::span<const std::uint8_t> frame) noexcept
{
    receiver* const to = find(frame.first<6>());
    if (to && put(slot, *to, frame))
        return outcome::sent;
    if (to && to->channel) {
        check_receivers();
        if (!to->dead && !to->unresponsive)
            return outcome::full;
    }
    dropped_.add(1);
    return outcome::dropped;
}

member::outcome member::send_to_all(std::span<const std::uint8_t> frame) noexcept
{
    for (unsigned slot = 0; slot != most_members; ++slot) {
        const std::uint32_t life = file_.shared().slots[slot].life.load(std::memory_order_acquire);
        receiver* const to = slot != this->slot() ? find(slot, life) : nullptr;
        if (to && !put(slot, *to, frame))
            dropped_.add(1);
    }
    return outcome::sent;
}

/// The receiver that has the MAC; nullptr if nobody has it, or one that was killed.
member::receiver* member::find(std::span<const std::uint8_t, 6> to) noexcept
{
    const unsigned slot = to[5];
    if (slot >= most_members)
        return nullptr;
    const std::uint32_t life = file_.shared().slots[slot].life.load(std::memory_order_acquire);
    return std::ranges::equal(to, mac_of(slot, life)) ? find(slot, life) : nullptr;
}

/// The receiver that has the slot; nullptr if nobody has it, or one that was killed.
member::receiver* member::find(unsigned slot, std::uint32_t life) noexcept
{
    receiver& to = to_[slot];
    if (life % 2 == 0)
        return nullptr;
    if (to.life != life) {
        to.life = life;
        to.dead = to.unresponsive = false;
        to.since_ns = 0;
    }
    return to.dead ? nullptr : &to;
}

bool member::put(unsigned slot, receiver& to, std::span<const std::uint8_t> frame) noexcept
{
    if ((!to.channel && !make_channel(slot, to)) || !to.channel.put(frame))
        return false;
    to.unresponsive = false;
    unpublished_ |= bit(slot);
    return true;
}

bool member::make_channel(unsigned slot, receiver& to) noexcept
{
    const std::uint64_t now_ns = core::utc_now_ns();
    if (now_ns < to.no_memory_until_ns)
        return false;
    if (std::byte* const ring = file_.make_ring(this->slot(), slot)) {
        to.channel = channel_out(file_.shared().channels[this->slot()][slot], ring);
        return true;
    }
    const int why = errno;
    to.no_memory_until_ns = now_ns + memory_again_ns;
    if (!std::exchange(logged_no_memory_, true))
        core::log_or_lose(log_level::warning, [&] {
            return fmt::format("weftio: {}: frames to member {} are dropped: {} has no space for {} KiB more ({}); "
                               "enlarge its folder (\"docker run --shm-size 1g\")",
                               who_, slot, file_.path(), ring_bytes / 1024, std::strerror(why));
        });
    return false;
}

void member::publish() noexcept
{
    if (unpublished_ == 0)
        return;
    for_each_bit(std::exchange(unpublished_, 0), [&](unsigned slot) {
        if (to_[slot].channel.publish())
            file_.shared().slots[slot].news.fetch_or(bit(this->slot()), std::memory_order_acq_rel);
    });
    check_receivers();
}

/// Finds out which receivers consume nothing, and which of those were killed. Does nothing until 10 ms have passed.
void member::check_receivers() noexcept
{
    const std::uint64_t now_ns = core::utc_stamp_ns();
    if (now_ns - checked_at_ns_ < check_every_ns)
        return;
    const bool in_a_row = now_ns - checked_at_ns_ < 3 * check_every_ns;
    checked_at_ns_ = now_ns;
    for (unsigned slot = 0; slot != most_members; ++slot)
        if (to_[slot].channel && !to_[slot].dead)
            check_receiver(slot, to_[slot], now_ns, in_a_row);
}

/// @param in_a_row  the last look was a short time ago: otherwise nothing is known of the time between
void member::check_receiver(unsigned slot, receiver& to, std::uint64_t now_ns, bool in_a_row) noexcept
{
    const std::uint64_t before = std::exchange(to.consumed, to.channel.consumed());
    if (to.channel.waiting() == 0 || to.consumed != before) {
        to.unresponsive = false;
        to.since_ns = now_ns;
        return;
    }
    if (!in_a_row || to.since_ns == 0)
        to.since_ns = now_ns;
    to.unresponsive = to.unresponsive || now_ns - to.since_ns >= patience_ns;
    to.dead = slot != this->slot() && !is_held(file_.descriptor(), slot);
}

void member::hear_news() noexcept
{
    if (own_.news.load(std::memory_order_relaxed) != 0)
        pending_ |= own_.news.exchange(0, std::memory_order_acq_rel);
}

channel_in* member::channel_from(unsigned slot) noexcept
{
    channel_in& channel = from_[slot];
    if (!channel)
        if (std::byte* const ring = file_.map_ring(slot, this->slot()))
            channel = channel_in(file_.shared().channels[slot][this->slot()], ring);
    return channel ? &channel : nullptr;
}

/// Frames for an earlier member of the slot are not.
bool member::is_for_us(std::span<const std::uint8_t> frame) const noexcept
{
    return frame.size() >= least_frame_bytes && (is_for_several(frame) || std::ranges::equal(frame.first(6), address_));
}

void member::next_channel() noexcept
{
    in_a_row_ = 0;
    current_ = (current_ + 1) % most_members;
}

std::span<const std::uint8_t> member::front() noexcept
{
    for (;;) {
        if (in_a_row_ == 0)
            hear_news();
        if (pending_ == 0)
            return {};
        current_ =
            (current_ + static_cast<unsigned>(std::countr_zero(std::rotr(pending_, static_cast<int>(current_))))) %
            most_members;
        channel_in* const channel = channel_from(current_);
        const std::span<const std::uint8_t> frame = channel ? channel->front() : std::span<const std::uint8_t>{};
        if (!frame.empty() && is_for_us(frame))
            return frame;
        if (!frame.empty()) {
            stray_.add(1);
            pop();
            continue;
        }
        if (channel && channel->take_damaged())
            damaged_.add(1);
        pending_ &= ~bit(current_);
        next_channel();
    }
}

void member::pop() noexcept
{
    from_[current_].pop();
    taken_of_ |= bit(current_);
    if (++in_a_row_ == most_in_a_row)
        next_channel();
}

void member::release() noexcept
{
    for_each_bit(std::exchange(taken_of_, 0), [&](unsigned slot) { from_[slot].release(); });
}

void member::tell_queues(std::uint32_t first, std::uint32_t count) noexcept
{
    own_.first_queue.store(first, std::memory_order_relaxed);
    own_.queues.store(count, std::memory_order_relaxed);
}

void member::tell_address(const gid& first) noexcept
{
    std::array<std::uint64_t, 2> halves{};
    std::memcpy(halves.data(), first.data(), sizeof halves);
    for (std::size_t half = 0; half != halves.size(); ++half)
        own_.address[half].store(halves[half], std::memory_order_relaxed);
}

bool member::has_left(const mac& from) const noexcept
{
    constexpr auto acquire = std::memory_order_acquire;
    const unsigned slot = from[5];
    const bool is_of_wire = slot < most_members && std::equal(from.begin(), from.begin() + 2, address_.begin());
    if (!is_of_wire || from == address_)
        return false;
    const std::uint32_t life = file_.shared().slots[slot].life.load(acquire);
    if (mac_of(slot, life) != from)
        return true; // the slot is another one's
    if (life % 2 == 1 && is_held(file_.descriptor(), slot))
        return false;
    const channel_state& sent = file_.shared().channels[slot][this->slot()];
    return sent.consumed.load(acquire) == sent.produced.load(acquire);
}

std::vector<member_facts> member::members() const
{
    return members_of(file_.descriptor(), slot());
}

} // namespace weftio::wires
