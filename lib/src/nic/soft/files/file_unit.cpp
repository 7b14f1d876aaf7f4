#include "nic/soft/files/file_unit.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "nic/soft/files/file_work.hpp"
#include "storage/open_file.hpp"

namespace weftio::nic::soft {

file_unit::file_unit(std::unique_ptr<storage::way> way, bool reads_now)
    : parts_(most_parts), reads_now_(reads_now), way_(std::move(way))
{
    free_.reserve(most_parts);
    waiting_.reserve(most_parts);
    for (std::uint32_t number = most_parts; number-- > 0;)
        free_.push_back(number);
}

/// Send step 2: processes what has ended, gives each queue its turn, and submits the parts that have begun. The limit
/// also holds in inline mode: entries of other queues must not make a kernel's call long.
unsigned file_unit::turn(const turn_budget& budget)
{
    queues_.poll_for_work(budget.busy);
    unsigned moved = collect();
    moved += queues_.turn(std::min(budget.entries, entries_of_a_turn)).moved;
    streams_.end_batches();
    way_->flush();
    return moved;
}

bool file_unit::rest(std::chrono::nanoseconds longest) noexcept
{
    if (in_way_ == 0)
        return false;
    way_->wait(longest);
    return true;
}

bool file_unit::may_begin(file_work& queue) const noexcept
{
    return !free_.empty() && (line_.empty() || line_.front() == &queue);
}

/// Appends the queue to those that wait for room.
bool file_unit::refuse(file_work& queue)
{
    if (!std::exchange(queue.in_line, true))
        line_.push_back(&queue);
    return false;
}

bool file_unit::begin(file_part&& part)
{
    file_work& queue = *part.queue;
    if (!may_begin(queue))
        return refuse(queue);
    if (part.stream && !(part.address = part.stream->take()))
        return refuse(queue);
    const std::uint32_t number = free_.back();
    parts_[number] = std::move(part);
    if (parts_[number].stream && parts_[number].what == storage::io::kind::write) {
        copy(parts_[number], false);
        waiting_.push_back(number);
    } else if (!give_to_way(number)) {
        if (parts_[number].stream)
            parts_[number].stream->give_back(parts_[number].address);
        parts_[number] = {};
        return refuse(queue);
    }
    free_.pop_back();
    if (std::exchange(queue.in_line, false))
        line_.pop_front();
    return true;
}

bool file_unit::read_now(const file_part& part) const noexcept
{
    constexpr std::uint64_t last_offset = INT64_MAX; // preadv2() would use -1 as the descriptor's own position
    if (!reads_now_ || part.offset > last_offset)
        return false;
    const iovec to{.iov_base = part.address, .iov_len = part.bytes};
    const ssize_t bytes = preadv2(part.file.descriptor, &to, 1, static_cast<off_t>(part.offset), RWF_NOWAIT);
    return bytes == static_cast<ssize_t>(part.bytes);
}

/// Submits a part. Returns whether the way had room.
bool file_unit::give_to_way(std::uint32_t number)
{
    file_part& part = parts_[number];
    const bool taken = way_->submit({.what = part.what,
                                     .fd = part.file.descriptor,
                                     .offset = part.offset + part.done,
                                     .address = part.address + part.done,
                                     .bytes = part.bytes - part.done,
                                     .tag = number,
                                     .file = part.file.name,
                                     .memory = memory_of(part)});
    in_way_ += taken;
    part.at = taken ? file_part::phase::in_way : file_part::phase::to_way;
    return taken;
}

void file_unit::name_memory(std::uint32_t key, std::uint64_t name) noexcept
try {
    const std::lock_guard lock(memories_mutex_);
    if (name != 0)
        memories_.insert_or_assign(key, name);
    else
        memories_.erase(key);
} catch (const std::exception&) { // no memory: it gets no name
}

/// The registered name of the memory of a part that bypasses the page cache; 0: none.
std::uint64_t file_unit::memory_of(const file_part& part) const noexcept
{
    if (!part.file.direct || part.stream || part.file.direct->descriptor() != part.file.descriptor)
        return 0;
    const std::lock_guard lock(memories_mutex_);
    const auto found = memories_.find(part.key);
    return found == memories_.end() ? 0 : found->second;
}

/// Lets the copy engine copy the bytes between the slot and the device's memory.
void file_unit::copy(file_part& part, bool to_device)
{
    copy_stream& copies = part.stream->copies();
    if (to_device)
        copies.copy(part.device, part.address, part.done);
    else
        copies.copy(part.address, part.device, part.bytes);
    part.batch = copies.batch();
    part.at = file_part::phase::in_copy;
}

unsigned file_unit::collect()
{
    unsigned moved = 0;
    std::array<storage::io_done, 64> done;
    for (std::size_t count = done.size(); in_way_ != 0 && count == done.size(); moved += static_cast<unsigned>(count)) {
        count = way_->reap(done);
        for (const storage::io_done& each : std::span(done).first(count)) {
            --in_way_;
            took(static_cast<std::uint32_t>(each.tag), each.result);
        }
    }
    for (std::size_t at = waiting_.size(); at-- > 0;) {
        const std::uint32_t number = waiting_[at];
        const file_part::phase before = parts_[number].at;
        go_on(number);
        if (parts_[number].at == before)
            continue;
        ++moved;
        if (parts_[number].at != file_part::phase::to_way)
            waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return moved;
}

/// Continues a part that waits for room in the way, or for its copy engine.
void file_unit::go_on(std::uint32_t number)
{
    file_part& part = parts_[number];
    if (part.at == file_part::phase::to_way) {
        give_to_way(number);
        return;
    }
    if (!part.stream->copies().completed(part.batch)) {
        if (part.stream->copies().failed())
            end(number, EIO, true);
        return;
    }
    if (part.what == storage::io::kind::read)
        end(number, 0);
    else
        give_to_way(number);
}

/// The way has done a part completely or partially. A read that returns no more bytes has reached the end of the file;
/// with O_DIRECT, continuing at an unaligned end fails instead.
void file_unit::took(std::uint32_t number, std::int64_t result)
{
    file_part& part = parts_[number];
    const bool reads = part.what == storage::io::kind::read;
    if (result == -EINTR || result == -EAGAIN)
        return go_on_later(number);
    if (result < 0 && !(reads && part.done != 0 && result == -EINVAL))
        return end(number, static_cast<int>(-result));
    if (result == 0 && part.what == storage::io::kind::write)
        return end(number, EIO);
    part.done += static_cast<std::uint32_t>(std::max<std::int64_t>(result, 0));
    if (result > 0 && part.done != part.bytes)
        return go_on_later(number);
    if (!part.stream || !reads || part.done == 0)
        return end(number, 0);
    if (!part.device)
        return end(number, EFAULT);
    copy(part, true);
    waiting_.push_back(number);
}

/// Submits the rest of a part.
void file_unit::go_on_later(std::uint32_t number)
{
    if (!give_to_way(number))
        waiting_.push_back(number);
}

void file_unit::end(std::uint32_t number, int error, bool device_failed)
{
    file_part part = std::exchange(parts_[number], {});
    free_.push_back(number);
    if (part.stream)
        part.stream->give_back(part.address);
    if (part.queue)
        part.queue->completed(part.index, {.begin = part.begin,
                                           .bytes = part.bytes,
                                           .done = part.done,
                                           .error = error,
                                           .device_failed = device_failed});
}

void file_unit::leave_line(const file_work& queue) noexcept
{
    std::erase(line_, &queue);
}

void file_unit::disown(const file_work& queue) noexcept
{
    leave_line(queue);
    for (file_part& part : parts_)
        if (part.queue == &queue)
            part.queue = nullptr;
}

void file_unit::abandon(std::uint32_t key) noexcept
{
    for (file_part& part : parts_)
        if (part.key == key && part.at != file_part::phase::in_copy && part.stream)
            part.device = nullptr;
}

bool file_unit::uses(std::uint32_t key) const noexcept
{
    return std::ranges::any_of(
        parts_, [&](const file_part& part) { return part.at != file_part::phase::free && part.key == key; });
}

} // namespace weftio::nic::soft
