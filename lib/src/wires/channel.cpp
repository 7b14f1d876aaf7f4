#include "wires/channel.hpp"

#include <cstring>

namespace weftio::wires {

namespace {

constexpr std::uint64_t place_in_ring(std::uint64_t position) noexcept
{
    return position & (ring_bytes - 1);
}

void write_record(std::byte* at, std::uint32_t bytes) noexcept
{
    const record head{.bytes = bytes, .reserved = 0};
    std::memcpy(at, &head, sizeof head);
}

constexpr std::uint64_t rounded_up(std::uint64_t position) noexcept
{
    return (position + unit_bytes - 1) / unit_bytes * unit_bytes;
}

} // namespace

channel_out::channel_out(channel_state& state, std::byte* ring) noexcept
    : state_(&state), ring_(ring), put_(rounded_up(state.produced.load(std::memory_order_acquire))), published_(put_),
      consumed_(state.consumed.load(std::memory_order_acquire))
{}

/// Unsigned: positions that make no sense give a large difference, and so no room.
bool channel_out::has_room(std::uint64_t bytes) noexcept
{
    if (put_ + bytes - consumed_ <= ring_bytes)
        return true;
    consumed_ = consumed();
    return put_ + bytes - consumed_ <= ring_bytes;
}

bool channel_out::put(std::span<const std::uint8_t> frame) noexcept
{
    const std::uint32_t wanted = record_bytes(static_cast<std::uint32_t>(frame.size()));
    const std::uint64_t to_end = ring_bytes - place_in_ring(put_);
    const std::uint64_t skipped = wanted > to_end ? to_end : 0;
    if (!has_room(skipped + wanted))
        return false;
    if (skipped != 0)
        write_record(ring_ + place_in_ring(put_), record::skip);
    std::byte* const at = ring_ + place_in_ring(put_ + skipped);
    write_record(at, static_cast<std::uint32_t>(frame.size()));
    std::memcpy(at + sizeof(record), frame.data(), frame.size());
    put_ += skipped + wanted;
    return true;
}

bool channel_out::publish() noexcept
{
    if (put_ == published_)
        return false;
    state_->produced.store(put_, std::memory_order_release);
    published_ = put_;
    return true;
}

std::uint64_t channel_out::waiting() const noexcept
{
    return published_ - consumed();
}

channel_in::channel_in(channel_state& state, std::byte* ring) noexcept
    : state_(&state), ring_(ring), taken_(state.consumed.load(std::memory_order_relaxed)), produced_(taken_)
{}

std::span<const std::uint8_t> channel_in::front() noexcept
{
    if (taken_ == produced_)
        produced_ = state_->produced.load(std::memory_order_acquire);
    if (taken_ == produced_)
        return {};
    const std::span<const std::uint8_t> frame = read();
    if (frame.empty()) {
        damaged_ = true;
        taken_ = produced_;
        release();
    }
    return frame;
}

/// Reads the record at taken_, and passes over the one that fills the end of the ring. Returns an empty frame if the
/// record makes no sense.
std::span<const std::uint8_t> channel_in::read() noexcept
{
    const auto here = [&] { return place_in_ring(taken_); };
    auto bytes_here = [&] {
        std::uint32_t bytes = 0;
        std::memcpy(&bytes, ring_ + here(), sizeof bytes);
        return bytes;
    };
    if (produced_ - taken_ > ring_bytes || produced_ % unit_bytes != 0 || taken_ % unit_bytes != 0)
        return {};
    std::uint32_t bytes = bytes_here();
    if (bytes == record::skip) {
        if (const std::uint64_t to_end = ring_bytes - here(); produced_ - taken_ > to_end)
            taken_ += to_end;
        else
            return {};
        bytes = bytes_here();
    }
    if (bytes == 0 || bytes > most_frame_bytes)
        return {};
    front_bytes_ = record_bytes(bytes);
    if (front_bytes_ > produced_ - taken_ || front_bytes_ > ring_bytes - here())
        return {};
    return {reinterpret_cast<const std::uint8_t*>(ring_ + here() + sizeof(record)), bytes};
}

void channel_in::pop() noexcept
{
    taken_ += front_bytes_;
}

void channel_in::release() noexcept
{
    state_->consumed.store(taken_, std::memory_order_release);
}

} // namespace weftio::wires
