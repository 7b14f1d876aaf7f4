#include "storage/transfer_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/guarded.hpp"

namespace weftio::storage {

namespace {

constexpr std::size_t most_slots = 16;
constexpr std::size_t least_slot_bytes = std::size_t{64} << 10, most_slot_bytes = std::size_t{1} << 20;

bool is_sync(io::kind what)
{
    return what == io::kind::sync || what == io::kind::data_sync;
}

} // namespace

transfer_queue::transfer_queue(context& owner, std::unique_ptr<way> way, std::size_t most)
    : owner_(owner), way_(std::move(way)), most_(most),
      slot_bytes_(std::clamp(owner.options().part_bytes, least_slot_bytes, most_slot_bytes)),
      pieces_(owner.options().depth)
{
    for (piece& each : pieces_)
        free_pieces_.push_back(&each);
    again_.reserve(pieces_.size());
    copying_.reserve(pieces_.size());
}

transfer_queue::~transfer_queue()
{
    cancel_all();
    while (in_flight_ != 0)
        wait(std::chrono::milliseconds(100));
}

bool transfer_queue::submit(request request)
{
    if (in_flight_ + ended_.size() >= most_)
        return false;
    if (free_transfers_.empty())
        free_transfers_.push_back(&transfers_.emplace_back());
    transfer& taken = *free_transfers_.back();
    free_transfers_.pop_back();
    taken = transfer();
    taken.request = std::move(request);
    ++in_flight_;
    begin(taken);
    return true;
}

void transfer_queue::begin(transfer& which)
{
    const storage::request& asked = which.request;
    which.how = owner_.counts.begin(asked.bytes, asked.memory);
    which.next = asked.offset;
    which.stop = asked.offset + asked.bytes;
    if (is_sync(asked.what)) {
        which.stop = which.next + 1;
        which.plan.zones[0] = {which.next, which.stop, asked.file->descriptor(), false, 1};
    } else {
        which.plan = plan_transfer(*asked.file, asked.what, asked.memory, asked.bytes, asked.offset);
        which.next = which.plan.zones[0].begin;
    }
    choose_way(which.plan, way_->name(), owner_);
    if (which.plan.error != 0) {
        which.stop = asked.offset;
        which.error = which.plan.error;
    }
    beginning_.push_back(&which);
}

void transfer_queue::poll()
{
    reap();
    poll_copies();
    submit_again();
    begin_pieces();
    for (const auto& each : stagings_)
        if (each->device())
            each->end_batch();
    way_->flush();
    reap();
}

std::size_t transfer_queue::take(std::span<ended> to)
{
    const std::size_t count = std::min(to.size(), ended_.size());
    std::copy_n(ended_.begin(), count, to.begin());
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
}

void transfer_queue::wait(std::chrono::nanoseconds timeout)
{
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (;;) {
        poll();
        const auto left = until - std::chrono::steady_clock::now();
        if (!ended_.empty() || in_flight_ == 0 || left <= std::chrono::nanoseconds(0))
            return;
        constexpr std::chrono::nanoseconds brief = std::chrono::microseconds(50);
        if (copying_.empty() && way_->in_flight() != 0)
            way_->wait(gated_.empty() ? left : std::min<std::chrono::nanoseconds>(left, brief));
        else if (copying_.empty() && !gated_.empty())
            std::this_thread::sleep_for(brief); // another queue writes the same file
        else
            std::this_thread::yield(); // a copy engine works for some microseconds
    }
}

void transfer_queue::cancel_all()
{
    for (transfer* each : beginning_)
        each->canceled = true;
    for (transfer* each : gated_)
        each->canceled = true;
    for (const piece& each : pieces_) {
        if (each.at == stage::none)
            continue;
        each.of->canceled = true;
        if (each.at == stage::io)
            way_->cancel(each.io.tag);
    }
}

void transfer_queue::begin_pieces()
{
    beginning_.insert(beginning_.end(), gated_.begin(), gated_.end());
    gated_.clear();
    while (!beginning_.empty()) {
        transfer& first = *beginning_.front();
        const progress reached = begin_pieces(first);
        if (reached == progress::full)
            return;
        beginning_.pop_front();
        if (reached == progress::aside)
            continue;
        first.begun = true;
        end_if_done(first);
    }
}

transfer_queue::progress transfer_queue::begin_pieces(transfer& which)
{
    while (next_zone(which)) {
        if (which.canceled) {
            stop_at(which, which.next, ECANCELED);
            continue;
        }
        const zone& in = which.plan.zones[which.zone];
        if (which.inside != in.gate)
            if (const progress reached = enter(which, in.gate); reached != progress::all_begun)
                return reached;
        if (free_pieces_.empty() || !begin_piece(which, in))
            return progress::full;
    }
    return progress::all_begun;
}

/// Passes the gate of the file, once what has passed it in another manner has ended.
transfer_queue::progress transfer_queue::enter(transfer& which, write_gate::kind wanted)
{
    if (which.under_way != 0) {
        which.waits_for_own = true;
        return progress::aside;
    }
    leave_gate(which);
    write_gate& gate = which.request.file->gate;
    if (!gate.try_enter(wanted)) {
        if (wanted == write_gate::kind::cached && !std::exchange(which.waits_at_gate, true))
            gate.wait();
        gated_.push_back(&which);
        return progress::aside;
    }
    which.inside = wanted;
    if (std::exchange(which.waits_at_gate, false))
        gate.waited();
    return progress::all_begun;
}

void transfer_queue::leave_gate(transfer& which)
{
    write_gate& gate = which.request.file->gate;
    if (which.inside != write_gate::kind::none)
        gate.leave(std::exchange(which.inside, write_gate::kind::none));
}

/// Goes on to the zone that the next piece is in; false: there is none in front of `stop`.
bool transfer_queue::next_zone(transfer& which) const
{
    const auto& zones = which.plan.zones;
    while (which.zone != zones.size()) {
        if (which.next < std::min(zones[which.zone].end, which.stop))
            return true;
        if (++which.zone != zones.size())
            which.next = zones[which.zone].begin;
    }
    return false;
}

/// Returns false when no staging buffer is free.
bool transfer_queue::begin_piece(transfer& which, const zone& in)
{
    staging::slot* slot = nullptr;
    if (in.staged) {
        if (!find_staging(which, in))
            return true;
        slot = which.staging->take();
        if (!slot && which.staging->has_any())
            return false;
        if (!slot) {
            stop_at(which, which.next, ENOMEM);
            return true;
        }
    }
    const std::uint64_t part = in.staged ? slot_bytes_ : std::max<std::uint64_t>(owner_.options().part_bytes, in.align);
    piece& made = *free_pieces_.back();
    free_pieces_.pop_back();
    made = {.of = &which, .begin = which.next, .align = in.align, .slot = slot};
    made.end = std::min(in.end, (made.begin / part + 1) * part);
    made.io_begin = made.begin / in.align * in.align;
    const std::uint64_t io_end = (made.end + in.align - 1) / in.align * in.align;
    made.buffer = slot ? slot->cpu() : is_sync(which.request.what) ? nullptr : memory_at(which, made.begin);
    made.io = {which.request.what,
               in.fd,
               made.io_begin,
               made.buffer,
               static_cast<std::uint32_t>(io_end - made.io_begin),
               static_cast<std::uint64_t>(&made - pieces_.data()),
               which.request.file->name_of(in.fd),
               0,
               which.plan.vendor.file ? &which.plan.vendor : nullptr,
               which.plan.by_threads};
    if (in.align != 1)
        made.io.memory = slot ? slot->registered : which.request.memory.registered;
    which.next = made.end;
    ++which.under_way;
    if (slot && which.request.what == io::kind::write)
        fill_slot(made);
    else
        submit_io(made);
    return true;
}

/// Returns false, and stops the transfer, when its memory cannot be staged.
bool transfer_queue::find_staging(transfer& which, const zone& in)
try {
    if (which.staging)
        return true;
    const auto& owner = which.request.memory.owner;
    for (const auto& each : stagings_)
        if (each->device() == owner.get())
            which.staging = each.get();
    if (!which.staging) {
        stagings_.push_back(std::make_unique<storage::staging>(owner_.rings, owner, slot_bytes_, most_slots));
        which.staging = stagings_.back().get();
    }
    if (!owner)
        core::guard_memory(); // what the CPU copies for the kernel may be absent
    return true;
} catch (const std::exception&) { // no copy engine, or no memory
    stop_at(which, in.begin, which.request.memory.owner ? ENOTSUP : ENOMEM);
    return false;
}

/// Brings what is to be written into the buffer.
void transfer_queue::fill_slot(piece& which)
{
    const std::byte* from = memory_at(*which.of, which.begin);
    const std::size_t bytes = which.end - which.begin;
    staging& by = *which.of->staging;
    if (by.device()) {
        which.batch = by.copy(which.slot->at.device, from, bytes);
        which.at = stage::fetching;
        copying_.push_back(&which);
    } else if (core::guarded_copy(which.slot->cpu(), from, bytes)) {
        submit_io(which);
    } else {
        conclude(which, EFAULT);
    }
}

void transfer_queue::submit_io(piece& which)
{
    which.at = stage::io;
    if (!way_->submit(which.io))
        again_.push_back(&which);
}

void transfer_queue::submit_again()
{
    if (again_.empty())
        return;
    std::vector<piece*> waiting;
    waiting.swap(again_);
    again_.reserve(pieces_.size());
    for (piece* each : waiting)
        submit_io(*each);
}

void transfer_queue::reap()
{
    std::array<io_done, 64> done;
    for (;;) {
        const std::size_t count = way_->reap(done);
        for (const io_done& each : std::span(done).first(count))
            took(pieces_[each.tag], each.result);
        if (count != done.size())
            return;
    }
}

/// One io has ended: the piece goes on behind its last byte, or is done.
void transfer_queue::took(piece& which, std::int64_t result)
{
    if (result == -EINTR || result == -EAGAIN) // io_uring says so of a descriptor with O_NONBLOCK
        result = execute(which.io);
    const auto bytes = static_cast<std::uint32_t>(std::max<std::int64_t>(result, 0));
    which.io.offset += bytes;
    which.io.address += bytes;
    which.io.bytes -= std::min(bytes, which.io.bytes);
    if (result < 0)
        return conclude(which, static_cast<int>(-result));
    if (is_sync(which.io.what) || which.io.bytes == 0)
        return conclude(which, 0);
    if (result == 0)
        return conclude(which, which.io.what == io::kind::write ? ENOSPC : 0);
    if (bytes % which.align != 0) { // O_DIRECT ends inside a block only where the file does
        if (which.io.what == io::kind::read)
            return conclude(which, 0);
        open_file& file = *which.of->request.file;
        which.io.fd = std::max(file.buffered(), which.io.fd);
        which.io.file = file.name_of(which.io.fd);
        which.io.memory = 0;
    }
    submit_io(which);
}

/// The piece needs no more ios; what was read goes where it belongs.
void transfer_queue::conclude(piece& which, int error)
{
    transfer& of = *which.of;
    if (is_sync(which.io.what)) {
        stop_at(of, error == 0 ? which.end : which.begin, error);
        return free_piece(which);
    }
    const std::uint64_t reached = std::clamp(which.io.offset, which.begin, which.end);
    if (reached != which.end)
        stop_at(of, reached, error);
    which.end = reached;
    if (!which.slot || which.io.what == io::kind::write || which.begin == reached)
        return free_piece(which);
    const std::byte* from = which.buffer + (which.begin - which.io_begin);
    std::byte* to = memory_at(of, which.begin);
    if (of.staging->device()) {
        const auto* seen = static_cast<const std::byte*>(which.slot->at.device) + (which.begin - which.io_begin);
        which.batch = of.staging->copy(to, seen, reached - which.begin);
        which.at = stage::landing;
        copying_.push_back(&which);
        return;
    }
    if (!core::guarded_copy(to, from, reached - which.begin))
        stop_at(of, which.begin, EFAULT);
    free_piece(which);
}

void transfer_queue::poll_copies()
{
    std::vector<piece*> waiting;
    waiting.swap(copying_);
    copying_.reserve(pieces_.size());
    for (piece* each : waiting) {
        staging& by = *each->of->staging;
        if (by.failed()) {
            stop_at(*each->of, each->begin, EIO);
            free_piece(*each);
        } else if (!by.completed(each->batch)) {
            copying_.push_back(each);
        } else if (each->at == stage::fetching) {
            submit_io(*each);
        } else {
            free_piece(*each);
        }
    }
}

void transfer_queue::free_piece(piece& which)
{
    transfer& of = *which.of;
    if (which.slot)
        of.staging->give(which.slot);
    which.at = stage::none;
    free_pieces_.push_back(&which);
    if (--of.under_way == 0 && std::exchange(of.waits_for_own, false))
        beginning_.push_back(&of);
    end_if_done(of);
}

void transfer_queue::stop_at(transfer& which, std::uint64_t position, int error)
{
    if (position >= which.stop)
        return;
    which.stop = position;
    which.error = error;
}

void transfer_queue::end_if_done(transfer& which)
{
    if (which.under_way != 0 || !which.begun)
        return;
    const storage::request& asked = which.request;
    file_result result{.error = which.error, .way = which.plan.way, .fall = which.plan.fall, .position = asked.offset};
    if (!is_sync(asked.what))
        result.bytes = static_cast<std::int64_t>(which.stop - asked.offset);
    result.position += static_cast<std::uint64_t>(result.bytes);
    leave_gate(which);
    if (which.waits_at_gate) // canceled
        asked.file->gate.waited();
    owner_.account(asked.what, result, which.how);
    ended_.push_back({asked.tag, result});
    which.request = {};
    free_transfers_.push_back(&which);
    --in_flight_;
}

std::byte* transfer_queue::memory_at(const transfer& which, std::uint64_t position) const
{
    const place& memory = which.request.memory;
    return (memory.device ? memory.device : memory.cpu) + (position - which.request.offset);
}

} // namespace weftio::storage
