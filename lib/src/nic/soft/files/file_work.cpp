#include "nic/soft/files/file_work.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock.hpp"
#include "nic/soft/files/file_unit.hpp"
#include "storage/open_file.hpp"

namespace weftio::nic::soft {

namespace {

/// The errno in the result word of an entry that ends for this reason before a system call.
int errno_of(refusal reason) noexcept
{
    switch (reason) {
        case refusal::flushed: return ECANCELED;
        case refusal::unknown_file:
        case refusal::file_ended: return EBADF;
        case refusal::unknown_key:
        case refusal::other_domain:
        case refusal::outside_region:
        case refusal::out_of_reach:
        case refusal::memory_gone: return EFAULT;
        case refusal::no_local_write: return EACCES;
        case refusal::device_failed: return EIO;
        case refusal::io_failed: return ENOTSUP; // an entry that would fall back
        default: return EINVAL;
    }
}

} // namespace

file_work::file_work(const tx_ring& ring, std::uint64_t* results, const keys::nic_keys& keys, const file_keys& files,
                     file_unit& unit)
    : work_queue(ring), results_(results), keys_(keys, ring.domain), files_(files), unit_(unit),
      operations_(ring.entries.depth)
{}

file_work::~file_work()
{
    unit_.disown(*this);
}

unsigned file_work::turn(std::uint32_t most)
{
    read_doorbell_record();
    const std::uint32_t before = next_;
    const std::uint64_t begun_before = under_way_ ? begun_ : 0;
    if (failed() && next_ != submitted_)
        count_flushed(flush(next_));
    budget left{.parts = most, .bytes = most * bytes_of_an_entry};
    while (left.parts != 0 && next_ != submitted_)
        if (!execute(left))
            break;
    if (in_line && next_ == submitted_) {
        in_line = false;
        unit_.leave_line(*this);
    }
    unsigned moved = next_ - before + (under_way_ && begun_ != begun_before);
    if (has_failure_to_publish() || (completed_ != handed_ && returned(completed_)))
        moved += complete();
    return moved;
}

/// Begins the entry at next_ or a part of it. Returns whether the next entry may follow.
bool file_work::execute(budget& left)
{
    const bool fresh = !under_way_;
    if (fresh && !take_up()) {
        request_.file.use.reset(); // the entry was refused
        return false;
    }
    if (!under_way_)
        return true; // nothing to do
    const bool waits = request_.waits_for_all && begun_ == 0 && not_completed_ != 1;
    if (!waits && (fresh || still_may()) && begin_parts(left))
        return true;
    request_.file.use.reset(); // between two turns, only parts hold the file
    return false;
}

/// Decodes and checks the entry at next_. Returns whether it could be executed.
bool file_work::take_up()
{
    refusal reason = fetch_any(ring_.entries, next_, submitted_ - next_, entry_);
    if (reason == refusal::none && entry_.opcode == WEFTIO_OPCODE_NOP) {
        skip();
        return true;
    }
    if (reason == refusal::none)
        reason = read_file_entry(entry_, files_, keys_, request_);
    if (reason == refusal::none && request_.device && !unit_.streams().find(request_.device))
        reason = refusal::out_of_reach;
    if (reason == refusal::none && files_.strict() && request_.fall() != file_fall::none)
        return refuse_fall();
    if (reason != refusal::none) {
        if (!std::exchange(any_failed_, true))
            failed_at_ = next_;
        fail(next_, reason);
        return false;
    }
    operation_of(next_) = {.what = request_.what,
                           .event = entry_.event,
                           .fall = request_.fall(),
                           .offset = request_.offset,
                           .bytes = request_.bytes,
                           .end = request_.bytes,
                           .how = files_.begin(request_.bytes, request_.owner)};
    begun_ = 0;
    under_way_ = true;
    ++not_completed_;
    return true;
}

/// Refuses an entry that would fall back, which is not allowed. Returns false.
bool file_work::refuse_fall()
{
    files_.count(request_.what,
                 {.error = ENOTSUP, .way = unit_.way(), .fall = request_.fall(), .position = request_.offset},
                 files_.begin(request_.bytes, request_.owner));
    if (!std::exchange(any_failed_, true))
        failed_at_ = next_;
    fail(next_, refusal::io_failed, ENOTSUP);
    return false;
}

void file_work::skip()
{
    operation_of(next_) = {.begun = true, .completed = true};
    executed(next_) = {.blocks = static_cast<std::uint8_t>(entry_.blocks()), .event = entry_.event};
    write_result(next_, 0);
    handed_ = next_ += entry_.blocks();
    enqueued.add(1);
    skipped.add(1);
}

/// Whether file and memory of the entry in progress are still registered; if not, the entry fails.
bool file_work::still_may()
{
    refusal reason = files_.find(request_.file_key, request_.file) ? refusal::none : refusal::file_ended;
    if (reason == refusal::none && request_.memory_key != 0 && !keys_.still(request_.by))
        reason = read_file_entry(entry_, files_, keys_, request_);
    if (reason == refusal::none)
        return true;
    close_entry(reason);
    return false;
}

/// Length of the next part. Parts end at page boundaries of the file. With O_DIRECT, unaligned edges are separate
/// parts.
std::uint32_t file_work::next_part_bytes(const staging_stream* stream) const noexcept
{
    const std::uint32_t most = stream ? staging_stream::slot_bytes : part_bytes, align = request_.align();
    const std::uint64_t offset = request_.offset + begun_, rest = request_.bytes - begun_;
    if (offset % align != 0)
        return static_cast<std::uint32_t>(std::min(rest, page_bytes - offset % page_bytes));
    const std::uint64_t bytes = std::min<std::uint64_t>(rest, most - offset % page_bytes);
    return static_cast<std::uint32_t>(bytes > align ? bytes - bytes % align : bytes);
}

file_part file_work::next_part(staging_stream* stream, std::uint32_t bytes)
{
    std::byte* const at = request_.at ? request_.at + begun_ : nullptr;
    file_part part{.queue = this,
                   .index = next_,
                   .what = request_.what,
                   .file = request_.file,
                   .offset = request_.offset + begun_,
                   .begin = begun_,
                   .bytes = bytes,
                   .address = stream ? nullptr : at,
                   .key = request_.memory_key,
                   .stream = stream,
                   .device = stream ? at : nullptr};
    part.file.descriptor = request_.descriptor_for(part.offset, bytes, part.address); // slots are aligned
    if (part.file.descriptor != request_.file.descriptor)
        part.file.name = part.file.direct->name_of(part.file.descriptor);
    return part;
}

/// Reads the whole entry at once, if it is short and in the page cache. After a miss, the next read skips the attempt;
/// after each further miss twice as many, up to 64. An uncached file thus costs few extra calls.
bool file_work::read_now(budget& left)
{
    constexpr std::uint32_t most_misses = 6;
    if (begun_ != 0 || request_.bytes > file_unit::most_now || request_.what != storage::io::kind::read ||
        request_.device || request_.file.direct || (passes_ != 0 && passes_-- != 0))
        return false;
    const auto bytes = static_cast<std::uint32_t>(request_.bytes);
    if (!unit_.read_now(next_part(nullptr, bytes))) {
        passes_ = 1U << misses_;
        misses_ = std::min(misses_ + 1, most_misses);
        return false;
    }
    misses_ = 0;
    begun_ = bytes;
    operation_of(next_).read_now = true;
    --left.parts;
    left.bytes -= std::min<std::uint64_t>(left.bytes, bytes);
    close_entry(refusal::none);
    return true;
}

/// Begins parts of the entry in progress, as many as may be in flight. Returns whether all of it has begun.
bool file_work::begin_parts(budget& left)
{
    staging_stream* const stream = request_.device ? unit_.streams().find(request_.device) : nullptr;
    const std::uint32_t index = next_;
    if (left.bytes != 0 && read_now(left))
        return true;
    do {
        const std::uint32_t bytes = next_part_bytes(stream);
        if (left.parts == 0 || left.bytes == 0 || parts_ == most_parts || (parts_ != 0 && bytes_ + bytes > most_bytes))
            return false;
        if (!unit_.begin(next_part(stream, bytes)))
            return false;
        --left.parts;
        left.bytes -= std::min<std::uint64_t>(left.bytes, bytes);
        ++parts_;
        bytes_ += bytes;
        ++operation_of(index).parts;
        begun_ += bytes;
    } while (begun_ != request_.bytes);
    close_entry(refusal::none);
    return true;
}

/// Begins no more parts of the entry at next_. @param reason  why not all of it has begun; none: all has
void file_work::close_entry(refusal reason)
{
    const std::uint32_t index = next_;
    under_way_ = false;
    request_.file = {}; // parts in flight hold it
    operation& each = operation_of(index);
    each.begun = true;
    if (reason != refusal::none && each.reason == refusal::none)
        each.reason = reason;
    executed(index) = {.event = each.event};
    handed_ = ++next_;
    if (each.parts == 0)
        finish(index);
}

void file_work::completed(std::uint32_t index, const part_result& part)
{
    operation& each = operation_of(index);
    --parts_;
    bytes_ -= part.bytes;
    --each.parts;
    if (part.done != part.bytes)
        each.end = std::min(each.end, part.begin + part.done);
    if (part.error != 0 && (each.error == 0 || part.begin < each.failed)) {
        each.error = part.error;
        each.failed = part.begin;
        each.reason = part.device_failed     ? refusal::device_failed
                      : part.error == EFAULT ? refusal::memory_gone
                                             : refusal::io_failed;
    }
    if (!each.begun && (part.error != 0 || part.done != part.bytes))
        close_entry(each.reason); // nothing after an error or the end of the file
    else if (each.begun && each.parts == 0)
        finish(index);
}

/// All parts of the entry at `index` that had begun have ended.
void file_work::finish(std::uint32_t index)
{
    operation& each = operation_of(index);
    each.completed = true;
    --not_completed_;
    count_for_engine(each);
    if (each.reason != refusal::none)
        return finish_failed(index);
    write_result(index, static_cast<std::int64_t>(each.end));
    executed(index).bytes = static_cast<std::uint32_t>(each.end);
    if (behind_failure(index))
        executed(index).reason = refusal::flushed;
    enqueued.add(1);
    count(each);
}

void file_work::finish_failed(std::uint32_t index)
{
    operation& each = operation_of(index);
    executed(index).reason = each.reason;
    write_result(index, -static_cast<std::int64_t>(each.error != 0 ? each.error : errno_of(each.reason)));
    if (each.reason == refusal::flushed) {
        count_flushed(1);
        return;
    }
    failed_.store(true, std::memory_order_relaxed);
    failed_entries.add(1);
    enqueued.add(1);
    events_.put({.position = index,
                 .reason = each.reason,
                 .time_ns = core::utc_now_ns(),
                 .detail = static_cast<std::uint32_t>(each.error)});
    if (!any_failed_ || !behind_failure(index))
        failed_at_ = index;
    any_failed_ = true;
    mark_behind(index);
    give_up_wait();
    count_flushed(flush(next_));
}

/// Counts the operation for the file_engine, if a system call was made for it.
void file_work::count_for_engine(const operation& done) const noexcept
{
    if (done.reason != refusal::none && done.error == 0)
        return;
    const std::uint64_t bytes = done.what == storage::io::kind::sync ? 0 : done.end;
    files_.count(done.what,
                 {.bytes = static_cast<std::int64_t>(bytes),
                  .error = done.error,
                  .way = done.read_now ? file_way::posix : unit_.way(),
                  .fall = done.fall,
                  .position = done.offset + bytes},
                 done.how);
}

void file_work::count(const operation& done)
{
    switch (done.what) {
        case storage::io::kind::read:
            read.add(1);
            read_bytes.add(done.end);
            short_reads.add(done.end != done.bytes);
            break;
        case storage::io::kind::write:
            written.add(1);
            written_bytes.add(done.end);
            break;
        default: synced.add(1);
    }
}

/// After a failed entry, a kernel must find the queue in error from that entry on. Later entries that were done before
/// it therefore complete as flushed ones; their result words stay.
void file_work::mark_behind(std::uint32_t index) noexcept
{
    for (std::uint32_t at = index + 1; at != next_; ++at)
        if (operation_of(at).completed && executed(at).reason == refusal::none)
            executed(at).reason = refusal::flushed;
}

bool file_work::behind_failure(std::uint32_t index) const noexcept
{
    return any_failed_ && static_cast<std::int32_t>(index - failed_at_) > 0;
}

/// Release: kernels read the word after the completion, which is published later.
void file_work::write_result(std::uint32_t index, std::int64_t result) noexcept
{
    weftio_store_release_sys_u64(&results_[index & (ring_.entries.depth - 1)], static_cast<std::uint64_t>(result));
}

/// Ends an entry, or a block of one, that is not executed.
void file_work::mark_done(std::uint32_t index) noexcept
{
    operation_of(index) = {.begun = true, .completed = true, .reason = executed(index).reason};
    write_result(index, -static_cast<std::int64_t>(errno_of(executed(index).reason)));
}

/// Flushes the rest of the entry that is beginning.
void file_work::give_up_wait()
{
    if (under_way_)
        close_entry(refusal::flushed);
}

void file_work::stop()
{
    read_doorbell_record();
    failed_.store(true, std::memory_order_relaxed);
    give_up_wait();
    count_flushed(flush(next_));
    if (std::exchange(in_line, false))
        unit_.leave_line(*this);
    complete();
}

void file_work::restart(const tx_ring& ring, std::uint64_t* results) noexcept
{
    unit_.disown(*this);
    begin_again(ring, 0);
    results_ = results;
    std::ranges::fill(operations_, operation{});
    parts_ = not_completed_ = 0;
    bytes_ = 0;
    under_way_ = in_line = any_failed_ = false;
    request_.file = {};
}

} // namespace weftio::nic::soft
