// How queue pairs of the cable NIC execute entries.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cable_pair.hpp"
#include "weftio/clock.hpp"

namespace weftio::test {

/// All that the record named when the doorbell was rung last. Returns how many entries that were.
unsigned cable_pair::execute_all()
{
    if (state_ == rdma_state::reset || state_ == rdma_state::init)
        return 0;
    if (std::atomic_ref(*static_cast<std::uint64_t*>(bell_.at.cpu)).exchange(nothing_rung) != nothing_rung)
        read_doorbell_record();
    unsigned executed = 0;
    for (entry each; outstanding() != 0 && (state_ == rdma_state::ready_to_send || state_ == rdma_state::error);
         ++executed) {
        result how{.syndrome = WEFTIO_SYNDROME_FLUSHED};
        if (sends_ && !sends_->has_room(1))
            break;
        const bool sound = read(each);
        if (state_ != rdma_state::error)
            how = sound ? execute(each) : result{.syndrome = WEFTIO_SYNDROME_LOCAL_QP_OPERATION};
        if (how.waits)
            break;
        complete(each, how);
    }
    return executed;
}

/// The entry at `done_`. Returns whether it is well formed.
bool cable_pair::read(entry& out) const
{
    const auto* const ring = rings_.send.entries.cpu<std::uint32_t>();
    auto copy = [&](std::uint32_t block) {
        const std::uint32_t* const from = ring + std::size_t{(done_ + block) & (rings_.send.depth - 1)} * 16;
        for (std::uint32_t word = 0; word < 16; ++word)
            out.words[block * 16 + word] = weftio_swap32(from[word]);
    };
    copy(0);
    out.opcode = out.words[0] & 0xff;
    out.segments = out.words[1] & 0x3f;
    if (out.words[0] >> 8 != (done_ & 0xffff) || out.words[1] >> 8 != number_ || out.segments == 0 ||
        out.blocks() > outstanding()) {
        out.segments = 1;
        return false;
    }
    for (std::uint32_t block = 1; block < out.blocks(); ++block)
        copy(block);
    return true;
}

/// The bytes that a key names for this end: an entry's, or the peer's. nullptr: it may not.
std::uint8_t* cable_pair::find(std::uint32_t key, std::uint64_t address, std::uint64_t count, access rights) const
{
    const auto found = tables_.keys.find(key);
    if (found == tables_.keys.end() || found->second->domain != rings_.send.domain ||
        (found->second->rights & rights) != rights)
        return nullptr;
    const nic::region_request& region = *found->second;
    const std::uint64_t offset = address - region.address;
    if (offset > region.bytes || count > region.bytes - offset)
        return nullptr;
    if ((rights & (access::local_write | access::remote_write)) == access::none)
        tables_.push_ahead(*region.block);
    return static_cast<std::uint8_t*>(region.block->at.cpu) + region.offset + offset;
}

/// The bytes of a region or a window that the peer names.
std::uint8_t* cable_pair::find_for_peer(std::uint32_t key, std::uint64_t address, std::uint64_t count,
                                        access rights) const
{
    const cable_window* const window = find_cable_window(tables_, key);
    return window ? window->find(key, address, count, rights, as_window_user()) : find(key, address, count, rights);
}

bool cable_pair::local_pieces(const entry& what, std::uint32_t segment, access rights, std::vector<piece>& out) const
{
    for (; segment < what.segments; ++segment) {
        const std::uint32_t at = segment * 4, count = what.words[at] == 0 ? 0x80000000 : what.words[at];
        std::uint8_t* const found = find(what.words[at + 1], what.number_at(at + 2), count, rights);
        if (!found)
            return false;
        out.push_back({found, count});
    }
    return true;
}

/// The bytes of a WRITE or SEND, from `segment` on.
bool cable_pair::gather(const entry& what, std::uint32_t segment, bytes& out) const
{
    const std::uint32_t at = segment * 4;
    if (segment < what.segments && (what.words[at] & WEFTIO_INLINE_SEGMENT) != 0) {
        const std::uint32_t count = what.words[at] & ~WEFTIO_INLINE_SEGMENT;
        for (std::uint32_t byte = 0; byte < std::min(count, (what.segments - segment) * 16 - 4); ++byte)
            out.push_back(static_cast<std::uint8_t>(what.words[at + 1 + byte / 4] >> (24 - byte % 4 * 8)));
        return out.size() == count;
    }
    std::vector<piece> pieces;
    if (!local_pieces(what, segment, access::none, pieces))
        return false;
    for (const piece& each : pieces)
        out.insert(out.end(), each.at, each.at + each.bytes);
    return true;
}

/// Nothing: there is none, and `out` says whether one may come.
std::optional<cable_pair*> cable_pair::find_peer(result& out) const
{
    const auto found = tables_.pairs.find(to_.peer_queue);
    cable_pair* const peer = found == tables_.pairs.end() ? nullptr : found->second;
    const bool ours = peer && peer->to_.peer_queue == number_ && peer->to_.path.source == to_.path.destination &&
                      peer->to_.path.destination == to_.path.source;
    const bool ready =
        ours && (peer->state_ == rdma_state::ready_to_receive || peer->state_ == rdma_state::ready_to_send ||
                 peer->state_ == rdma_state::send_queue_drained);
    if (ready)
        return peer;
    out.waits = peer && peer->state_ != rdma_state::error; // it is not connected yet
    out.syndrome = WEFTIO_SYNDROME_RETRIES_EXCEEDED;
    return std::nullopt;
}

bool cable_pair::has_receive() const
{
    const auto* const record = rings_.receive.dbrec.cpu<std::uint32_t>();
    return rings_.receive.depth != 0 &&
           ((weftio_swap32(weftio_load_acquire_sys_u32(record)) - received_) & 0xffff) != 0;
}

bool cable_pair::have_room(const cable_pair& peer, bool receives) const
{
    if (!receives || !peer.receives_)
        return true;
    return peer.receives_->has_room(peer.receives_ == sends_ ? 2 : 1);
}

cable_pair::result cable_pair::execute(const entry& what)
{
    result out;
    if (what.opcode == WEFTIO_OPCODE_NOP)
        return out;
    if (what.opcode == WEFTIO_OPCODE_UMR)
        return change_window(what);
    if (what.opcode == WEFTIO_OPCODE_DUMP)
        return read_and_drop(what);
    const std::optional<cable_pair*> peer = find_peer(out);
    if (!peer)
        return out;
    bytes message;
    switch (what.opcode) {
        case WEFTIO_OPCODE_RDMA_WRITE:
        case WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE:
        case WEFTIO_OPCODE_SEND:
        case WEFTIO_OPCODE_SEND_IMMEDIATE: {
            const bool send = what.opcode == WEFTIO_OPCODE_SEND || what.opcode == WEFTIO_OPCODE_SEND_IMMEDIATE;
            if (!gather(what, send ? 1 : 2, message))
                return {.syndrome = WEFTIO_SYNDROME_LOCAL_PROTECTION};
            return write_or_send(what, **peer, std::move(message));
        }
        case WEFTIO_OPCODE_SEND_INVALIDATE:
            if (!gather(what, 1, message))
                return {.syndrome = WEFTIO_SYNDROME_LOCAL_PROTECTION};
            return send_and_invalidate(what, **peer, message);
        case WEFTIO_OPCODE_RDMA_READ:
        case WEFTIO_OPCODE_COMPARE_SWAP:
        case WEFTIO_OPCODE_FETCH_ADD: return read_or_change(what, **peer);
        default: return {.syndrome = WEFTIO_SYNDROME_LOCAL_QP_OPERATION};
    }
}

namespace {

/// A number on a multiple of its size changes at once, behind all that was written before.
void store(std::uint8_t* at, const std::uint8_t* from, std::size_t count)
{
    std::uint64_t number = 0;
    if (count != sizeof number || reinterpret_cast<std::uintptr_t>(at) % sizeof number != 0) {
        std::copy_n(from, count, at);
        return;
    }
    std::memcpy(&number, from, sizeof number);
    weftio_store_release_sys_u64(reinterpret_cast<weftio_u64*>(at), number);
}

bool denies(const nic::rdma_connection& peer, access right)
{
    return (peer.rights & right) != right;
}

} // namespace

cable_pair::result cable_pair::write_or_send(const entry& what, cable_pair& peer, bytes message)
{
    const bool send = what.opcode == WEFTIO_OPCODE_SEND || what.opcode == WEFTIO_OPCODE_SEND_IMMEDIATE;
    const bool immediate =
        what.opcode == WEFTIO_OPCODE_SEND_IMMEDIATE || what.opcode == WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE;
    const bool receives = send || immediate;
    const auto count = static_cast<std::uint32_t>(message.size());
    if ((receives && !peer.has_receive()) || !have_room(peer, receives))
        return {.waits = true};
    ++peer.counts_.requests;
    if (!send) {
        if (denies(peer.to_, access::remote_write))
            return {.syndrome = WEFTIO_SYNDROME_REMOTE_INVALID, .fails_peer = true};
        std::uint8_t* const to = peer.find_for_peer(what.words[6], what.number_at(4), count, access::remote_write);
        if (!to && count != 0) // a WRITE of no bytes names no memory
            return {.syndrome = WEFTIO_SYNDROME_REMOTE_ACCESS, .fails_peer = true};
        if (count != 0)
            place(to, message.data(), count);
    }
    if (receives) {
        const std::uint8_t refused =
            peer.receive(send ? &message : nullptr, {.opcode = !send       ? WEFTIO_CQE_OPCODE_RESPONDER_WRITE
                                                               : immediate ? WEFTIO_CQE_OPCODE_RESPONDER_SEND_IMMEDIATE
                                                                           : WEFTIO_CQE_OPCODE_RESPONDER_SEND,
                                                     .bytes = count,
                                                     .immediate = immediate ? what.words[3] : 0,
                                                     .solicited = (what.words[2] & WEFTIO_SOLICITED) != 0});
        if (refused != 0)
            return {.syndrome = refused, .fails_peer = true};
    }
    ++peer.counts_.executed;
    return {.bytes = count};
}

void cable_pair::place(std::uint8_t* at, const std::uint8_t* from, std::size_t count)
{
    if (tables_.late)
        tables_.under_way.push_back({at, {from, from + count}});
    else
        store(at, from, count);
}

void cable_tables::push_ahead(const devices::memory_block& memory)
{
    const auto* const begin = static_cast<const std::uint8_t*>(memory.at.cpu);
    std::erase_if(under_way, [&](const late_bytes& each) {
        const bool arrives = each.to >= begin && each.to < begin + memory.bytes;
        if (arrives)
            store(each.to, each.bytes.data(), each.bytes.size());
        return arrives;
    });
}

cable_pair::result cable_pair::read_and_drop(const entry& what) const
{
    std::vector<piece> pieces;
    if (what.segments != 2 || (what.words[4] & WEFTIO_INLINE_SEGMENT) != 0)
        return {.syndrome = WEFTIO_SYNDROME_LOCAL_QP_OPERATION};
    const bool allowed = local_pieces(what, 1, access::none, pieces);
    return {.syndrome = static_cast<std::uint8_t>(allowed ? 0 : WEFTIO_SYNDROME_LOCAL_PROTECTION)};
}

cable_pair::result cable_pair::change_window(const entry& what)
{
    cable_window* const window = find_cable_window(tables_, what.words[3]);
    const bool changed = window && window->change(what.words, what.segments, as_window_user());
    return {.syndrome = static_cast<std::uint8_t>(changed ? 0 : WEFTIO_SYNDROME_WINDOW_BIND)};
}

/// The key is judged before a byte is placed; a refusal is told to the receiver only.
cable_pair::result cable_pair::send_and_invalidate(const entry& what, cable_pair& peer, const bytes& message)
{
    if (!peer.has_receive() || !have_room(peer, true))
        return {.waits = true};
    ++peer.counts_.requests;
    const std::uint32_t key = what.words[3];
    cable_window* const window = find_cable_window(tables_, key);
    const auto count = static_cast<std::uint32_t>(message.size());
    cable_completion told{.opcode = WEFTIO_CQE_OPCODE_RESPONDER_SEND_INVALIDATE,
                          .bytes = count,
                          .immediate = key,
                          .solicited = (what.words[2] & WEFTIO_SOLICITED) != 0};
    if (!window || !window->may_free(key, peer.as_window_user())) {
        told.syndrome = WEFTIO_SYNDROME_REMOTE_INVALID;
        peer.receive(nullptr, told);
        peer.fail();
        return {.bytes = count};
    }
    told.frees = window;
    if (const std::uint8_t refused = peer.receive(&message, told); refused != 0)
        return {.syndrome = refused, .fails_peer = true};
    ++peer.counts_.executed;
    return {.bytes = count};
}

cable_pair::result cable_pair::read_or_change(const entry& what, cable_pair& peer)
{
    const bool reads = what.opcode == WEFTIO_OPCODE_RDMA_READ;
    const access right = reads ? access::remote_read : access::remote_atomic;
    std::vector<piece> to;
    if (!local_pieces(what, reads ? 2 : 3, access::local_write, to))
        return {.syndrome = WEFTIO_SYNDROME_LOCAL_PROTECTION};
    std::uint32_t count = 0;
    for (const piece& each : to)
        count += each.bytes;
    if (!reads && (count != sizeof(std::uint64_t) || what.number_at(4) % sizeof(std::uint64_t) != 0))
        return {.syndrome = WEFTIO_SYNDROME_LOCAL_QP_OPERATION};
    ++peer.counts_.requests;
    if (denies(peer.to_, right))
        return {.syndrome = WEFTIO_SYNDROME_REMOTE_INVALID, .fails_peer = true};
    std::uint8_t* const at = peer.find_for_peer(what.words[6], what.number_at(4), count, right);
    if (!at && count != 0)
        return {.syndrome = WEFTIO_SYNDROME_REMOTE_ACCESS, .fails_peer = true};
    bytes before(at, at + count);
    if (!reads) {
        std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(at));
        const std::uint64_t operand = what.number_at(8);
        std::uint64_t old = what.number_at(10);
        if (what.opcode == WEFTIO_OPCODE_FETCH_ADD)
            old = word.fetch_add(operand);
        else
            word.compare_exchange_strong(old, operand); // `old` is what was there, also when it was exchanged
        std::memcpy(before.data(), &old, sizeof old);
    }
    const std::uint8_t* from = before.data();
    for (const piece& each : to) {
        place(each.at, from, each.bytes);
        from += each.bytes;
    }
    ++peer.counts_.executed;
    return {.bytes = count};
}

/// Takes the next receive for a message of the peer's; nullptr: its bytes lie elsewhere. Returns what the peer learns.
std::uint8_t cable_pair::receive(const bytes* message, cable_completion what)
{
    const nic::rdma_receive_ring& ring = rings_.receive;
    const std::uint32_t* words =
        ring.entries.cpu<std::uint32_t>() + std::size_t{received_ & (ring.depth - 1)} * ring.segments * 4;
    std::vector<piece> places;
    std::size_t room = 0;
    for (std::uint32_t segment = 0; message && segment < ring.segments && room < message->size();
         ++segment, words += 4) {
        const std::uint32_t count = weftio_swap32(words[0]) == 0 ? 0x80000000 : weftio_swap32(words[0]);
        const std::uint32_t key = weftio_swap32(words[1]);
        if (key == WEFTIO_LKEY_INVALID)
            break;
        const auto used = static_cast<std::uint32_t>(std::min<std::size_t>(count, message->size() - room));
        const std::uint64_t address = std::uint64_t{weftio_swap32(words[2])} << 32 | weftio_swap32(words[3]);
        std::uint8_t* const at = find(key, address, used, access::local_write);
        if (!at)
            what.syndrome = WEFTIO_SYNDROME_LOCAL_PROTECTION;
        places.push_back({at, used});
        room += used;
    }
    if (what.syndrome == 0 && message && room < message->size())
        what.syndrome = WEFTIO_SYNDROME_LOCAL_LENGTH;
    const std::uint8_t* from = message ? message->data() : nullptr;
    for (const piece& each : places)
        if (what.syndrome == 0)
            place(each.at, std::exchange(from, from + each.bytes), each.bytes);
    if (what.syndrome == 0 && what.frees)
        what.frees->free(); // who sees the completion finds the window free
    complete_receive(what);
    if (what.syndrome == 0)
        return 0;
    return what.syndrome == WEFTIO_SYNDROME_LOCAL_LENGTH ? WEFTIO_SYNDROME_REMOTE_INVALID
                                                         : WEFTIO_SYNDROME_REMOTE_OPERATION;
}

void cable_pair::complete_receive(cable_completion what)
{
    const bool flushed = what.syndrome == WEFTIO_SYNDROME_FLUSHED;
    ++counts_.received;
    ++(what.syndrome == 0 ? counts_.filled : flushed ? counts_.receive_flushed : counts_.receive_failed);
    what.queue = number_;
    what.user_index = rings_.receive.target.user_index;
    what.index = received_;
    if (what.syndrome != 0)
        what.opcode = WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
    if (receives_)
        receives_->put(what);
    else
        write_completion(rings_.receive.completions.cpu<weftio_cqe>()[received_ & (rings_.receive.depth - 1)], what,
                         received_ / rings_.receive.depth);
    if (what.syndrome != 0 && !flushed)
        outcomes_.push_back({.position = received_,
                             .syndrome = what.syndrome,
                             .text = fmt::format("weftio: rdma_queue {}: receive {} failed: syndrome {:#x}", number_,
                                                 received_, what.syndrome),
                             .time_ns = utc_now_ns(),
                             .what = outcome_of::receive_ring});
    ++received_;
}

void cable_pair::end_if_overrun()
{
    if (state_ != rdma_state::reset && ((sends_ && sends_->overrun()) || (receives_ && receives_->overrun())))
        fail();
}

void cable_pair::flush_receives()
{
    while (state_ == rdma_state::error && has_receive() && (!receives_ || receives_->has_room(1)))
        complete_receive({.syndrome = WEFTIO_SYNDROME_FLUSHED});
}

void cable_pair::complete(const entry& what, const result& how)
{
    const bool flushed = how.syndrome == WEFTIO_SYNDROME_FLUSHED, good = how.syndrome == 0;
    const cable_completion report{.queue = number_,
                                  .user_index = rings_.send.completions.user_index,
                                  .opcode = good ? WEFTIO_CQE_OPCODE_REQUESTER : WEFTIO_CQE_OPCODE_REQUESTER_ERROR,
                                  .entry_opcode = what.opcode,
                                  .index = done_,
                                  .bytes = how.bytes,
                                  .syndrome = how.syndrome};
    ++counts_.enqueued;
    ++(!good                              ? flushed ? counts_.flushed : counts_.failed
       : what.opcode == WEFTIO_OPCODE_NOP ? counts_.skipped
                                          : counts_.done);
    counts_.done_bytes += how.bytes;
    const bool quiet = what.opcode == WEFTIO_OPCODE_UMR && !rings_.windows.strict; // as a ConnectX
    if (sends_ && ((!good && !quiet) || !rings_.send.completions.only_asked || what.asks()))
        sends_->put(report);
    if (!sends_ && !flushed) // the collapsed one says what failed
        write_completion(*rings_.send.completion.cpu<weftio_cqe>(), report, 0);
    if (!good && !flushed)
        outcomes_.push_back({.position = done_,
                             .syndrome = how.syndrome,
                             .text = fmt::format("weftio: rdma_queue {}: entry at position {} failed: syndrome {:#x}",
                                                 number_, done_, how.syndrome),
                             .time_ns = utc_now_ns()});
    else if (good && what.tells_host())
        outcomes_.push_back({.position = done_, .text = {}, .time_ns = utc_now_ns()});
    done_ += what.blocks();
    if (good)
        return;
    state_ = rdma_state::error;
    if (how.fails_peer) {
        cable_pair& peer = *tables_.pairs.at(to_.peer_queue);
        ++peer.counts_.refused;
        peer.fail();
    }
}

} // namespace weftio::test
