#include "send/conveyor.hpp"

#include <algorithm>
#include <thread>

#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(replay, "send/replay.kernel.h");

namespace weftio::replay {

namespace {
constexpr std::uint64_t unit_bytes = 64;
}

conveyor::conveyor(const port& port, const device& device, const conveyor_options& options)
    : device_(device), options_(options), queue_(port, device, {.entries = options.entries}),
      arena_memory_(device.allocate(options.arena_bytes, memory_kind::cpu_device)),
      record_memory_(device.allocate(std::size_t{options.records} * sizeof(replay_record), memory_kind::cpu_device)),
      feed_memory_(device.allocate(sizeof(replay_feed), memory_kind::cpu_device)), arena_region_(port, arena_memory_),
      arena_(static_cast<std::uint8_t*>(arena_memory_.cpu_address())),
      records_(static_cast<replay_record*>(record_memory_.cpu_address())),
      feed_(static_cast<replay_feed*>(feed_memory_.cpu_address())), remarks_(options.records)
{
    feed_->depth = options.records;
    feed_->timed = options.timed;
    feed_->lkey_be = weftio_swap32(arena_region_.lkey());
}

void conveyor::start()
{
    if (laps_)
        feed_->depth = static_cast<std::uint32_t>(std::max<std::uint64_t>(put_, 1));
    kernel_ =
        device_.launch(replay_kernel, {.blocks = 1, .lanes = options_.lanes}, queue_, record_memory_.device_address(),
                       feed_memory_.device_address(), arena_region_.device_address());
    while (kernel_.alive() && !weftio_load_acquire_sys_u64(&feed_->running))
        std::this_thread::yield();
}

std::uint8_t* conveyor::reserve(std::uint32_t bytes) noexcept
{
    std::uint64_t wanted = (bytes + unit_bytes - 1) / unit_bytes, depth = options_.arena_bytes / unit_bytes;
    std::uint64_t at = arena_end_;
    if (at % depth + wanted > depth) // a frame must not wrap to the start
        at += depth - at % depth;
    if (at + wanted - arena_begin_ > depth)
        return nullptr;
    reserved_at_ = at;
    return arena_ + at % depth * unit_bytes;
}

std::uint32_t conveyor::keep(std::uint32_t bytes) noexcept
{
    arena_end_ = reserved_at_ + (bytes + unit_bytes - 1) / unit_bytes;
    return static_cast<std::uint32_t>(reserved_at_ % (options_.arena_bytes / unit_bytes));
}

bool conveyor::has_record_room() const noexcept
{
    std::uint64_t oldest =
        options_.timed ? std::min(reclaimed_, notified_.load(std::memory_order_acquire)) : reclaimed_;
    return put_ - oldest < options_.records;
}

void conveyor::put(std::uint32_t place, std::uint32_t bytes, std::uint64_t offset_ns, std::uint32_t file,
                   bool notify) noexcept
{
    std::uint64_t slot = put_ % options_.records;
    std::uint64_t planned_ns = options_.timed ? anchor_ns_ + offset_ns : 0;
    bool waits = options_.timed && planned_ns != last_planned_ns_; // frames with the same time need one wait
    last_planned_ns_ = planned_ns;
    records_[slot] = {.time = waits ? eth_txq::timestamp(planned_ns) : 0,
                      .place = place,
                      .bytes = bytes,
                      .entry = next_entry_,
                      .flags = notify ? WEFTIO_DEV_SEND_NOTIFY : WEFTIO_DEV_SEND_NONE};
    next_entry_ += waits ? 2 : 1;
    remarks_[slot] = {
        .planned_ns = planned_ns, .file = file, .bytes = bytes, .entry = next_entry_ - 1, .arena_end = arena_end_};
    ++put_;
}

std::uint64_t conveyor::publish(std::uint64_t until_ns) noexcept
{
    std::uint64_t before = published_;
    if (!options_.timed)
        published_ = put_;
    while (published_ < put_ && remarks_[published_ % options_.records].planned_ns <= until_ns)
        ++published_;
    // Release, pairs with the kernel's acquire: records and frames are written first.
    if (published_ != before)
        weftio_store_release_sys_u64(&feed_->produced, published_);
    return put_ - published_;
}

void conveyor::publish_laps(std::uint64_t frames) noexcept
{
    weftio_store_release_sys_u64(&feed_->produced, frames);
}

void conveyor::close() noexcept
{
    weftio_store_release_sys_u64(&feed_->closed, 1);
}

void conveyor::end() noexcept
{
    weftio_store_release_sys_u64(&feed_->closed, 2);
}

/// Notifications arrive in the order of positions, so the search only moves forward.
std::optional<conveyor::remark> conveyor::notified(std::uint32_t position) noexcept
{
    std::optional<remark> found;
    std::uint64_t first = notified_.load(std::memory_order_relaxed), at = first;
    while (!found && at - first < remarks_.size() &&
           static_cast<std::int32_t>(remarks_[at % remarks_.size()].entry - position) <= 0) {
        const remark& here = remarks_[at++ % remarks_.size()];
        if (here.entry == position)
            found = here;
    }
    notified_.store(at, std::memory_order_release); // the feeder may reuse the slots
    return found;
}

void conveyor::nothing_pending(std::uint64_t sent) noexcept
{
    notified_.store(std::max(sent, notified_.load(std::memory_order_relaxed)), std::memory_order_release);
}

void conveyor::flush()
{
    end();
    kernel_.stop();
    kernel_.wait_for(std::chrono::seconds(1));
    queue_.reset();
}

} // namespace weftio::replay
