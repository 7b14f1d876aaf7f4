#include "nic/soft/rdma/staged_pair.hpp"

#include <algorithm>
#include <utility>

#include "net/roce_rules.hpp"

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

void staged_pair::make_state()
{
    if (!state_)
        state_ = std::make_shared<copies_of_pair>();
}

void staged_pair::join_all()
{
    make_state();
    copies_.submit_all();
    state_->last = copies_.last();
}

/// Without room, what others have collected is copied at once, so that room comes.
refusal staged_pair::write(const keys::located& to, std::span<const std::uint8_t> bytes, bool by_peer)
{
    staged_stream* const stream = copies_.find(to.device);
    if (stream == nullptr)
        return refusal::out_of_reach;
    make_state();
    const bool taken = copies_.collect(*stream,
                                       {.device = address_of(to),
                                        .bytes = bytes.size(),
                                        .which = devices::copy_queue::direction::to_device,
                                        .by_peer = by_peer,
                                        .psn = responder_ ? responder_->expected_psn() : 0},
                                       bytes.data(), state_);
    if (taken)
        return refusal::none;
    copies_.submit_all();
    return roce::not_now;
}

/// Where the bytes of a message are that an earlier packet of it has fetched; nullptr: it has not. They are those of
/// the memory at that time, and the memory stays as it is until the message is done.
const std::byte* staged_pair::find_fetched(const staged_stream& by, const std::byte* device,
                                           const roce::wanted_bytes& what, bool by_peer) noexcept
{
    fetched_bytes& have = fetched_;
    const auto at = static_cast<std::size_t>(device - have.device);
    const bool has = have.ahead && have.by == &by && have.by_peer == by_peer && have.message == what.message &&
                     at < have.count && what.count <= have.count - at &&
                     copies_.turns() - have.used <= most_turns_unused;
    if (!has)
        return nullptr;
    have.used = copies_.turns();
    return have.host + at;
}

/// Begins a copy, of bytes ahead too. If they continue those of the last one and its block has room, both may be one.
/// @return nullptr: there is no room
const std::byte* staged_pair::fetch(staged_stream& by, std::byte* device, const roce::wanted_bytes& what, bool by_peer)
{
    const std::size_t all = std::min<std::size_t>(std::size_t{what.count} + what.ahead, staging_blocks::most_bytes);
    const fetched_bytes last = std::exchange(fetched_, {});
    fetched_bytes next{.block = last.block, .by = &by, .device = device, .by_peer = by_peer, .message = what.message};
    const bool continues = last.block && last.by == &by && last.device + last.count == device &&
                           last.by_peer == by_peer &&
                           what.count <= last.block.first() + last.block.bytes() - (last.host + last.count);
    if (continues) {
        next.host = last.host + last.count;
    } else {
        const bool more_likely = what.count >= net::smallest_path_mtu;
        next.block = by.to_host.take(what.count, what.ahead == 0 && more_likely ? staging_blocks::most_bytes : all);
        if (!next.block)
            return nullptr;
        next.host = next.block.first();
    }
    const auto room = static_cast<std::size_t>(next.block.first() + next.block.bytes() - next.host);
    next.count = std::min(all, room);
    next.ahead = next.count > what.count;
    next.used = copies_.turns();
    copies_.begin(by,
                  {.block = next.block, .host = next.host, .device = device, .bytes = next.count, .by_peer = by_peer},
                  state_);
    fetched_ = std::move(next);
    return fetched_.host;
}

/// Packets with these bytes wait for the copy. Without room, the sender takes none.
refusal staged_pair::read(const keys::located& from, const roce::wanted_bytes& what,
                          std::span<const std::uint8_t>& bytes, bool by_peer)
{
    staged_stream* const stream = copies_.find(from.device);
    if (stream == nullptr)
        return refusal::out_of_reach;
    make_state();
    const std::byte* host = find_fetched(*stream, address_of(from), what, by_peer);
    if (host == nullptr)
        host = fetch(*stream, address_of(from), what, by_peer);
    if (host == nullptr) {
        sender_.refuse_next();
        bytes = {};
        return refusal::none;
    }
    bytes = {reinterpret_cast<const std::uint8_t*>(host), what.count};
    if (must_hold())
        sender_.hold_for(state_, front_);
    return refusal::none;
}

} // namespace weftio::nic::soft
