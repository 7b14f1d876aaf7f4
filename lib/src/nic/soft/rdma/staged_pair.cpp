#include "nic/soft/rdma/staged_pair.hpp"

#include <algorithm>

namespace weftio::nic::soft {

namespace {

std::byte* address_of(const keys::located& memory) noexcept
{
    return reinterpret_cast<std::byte*>(memory.device_address);
}

} // namespace

bool staged_pair::reaches(const keys::located& memory) const noexcept
{
    return memory.cpu == nullptr && copies_.find(memory.device) != nullptr;
}

void staged_pair::begin(staged_stream& by, const wanted_copy& what)
{
    if (!state_)
        state_ = std::make_shared<copies_of_pair>();
    copies_.begin(by, what, state_);
}

void staged_pair::join_all()
{
    if (!state_)
        state_ = std::make_shared<copies_of_pair>();
    state_->last = copies_.last();
}

refusal staged_pair::write(const keys::located& to, std::span<const std::uint8_t> bytes, bool by_peer)
{
    staged_stream* const stream = copies_.find(to.device);
    if (stream == nullptr)
        return refusal::out_of_reach;
    std::byte* const host = stream->to_device.take(bytes.size());
    if (host == nullptr)
        return roce::not_now;
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<std::uint8_t*>(host));
    begin(*stream, {.host = host,
                    .device = address_of(to),
                    .bytes = bytes.size(),
                    .which = devices::copy_queue::direction::to_device,
                    .by_peer = by_peer,
                    .psn = responder_ ? responder_->expected_psn() : 0});
    return refusal::none;
}

/// Packets with these bytes wait for the copy. Without room, the sender takes none.
refusal staged_pair::read(const keys::located& from, std::size_t count, std::span<const std::uint8_t>& bytes,
                          bool by_peer)
{
    staged_stream* const stream = copies_.find(from.device);
    if (stream == nullptr)
        return refusal::out_of_reach;
    std::byte* const host = stream->to_host.take(count);
    if (host == nullptr) {
        sender_.refuse_next();
        bytes = {};
        return refusal::none;
    }
    bytes = {reinterpret_cast<const std::uint8_t*>(host), count};
    begin(*stream, {.host = host, .device = address_of(from), .bytes = count, .by_peer = by_peer});
    sender_.hold_for(state_, front_);
    return refusal::none;
}

} // namespace weftio::nic::soft
