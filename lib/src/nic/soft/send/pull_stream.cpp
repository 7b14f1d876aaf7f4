#include "nic/soft/send/pull_stream.hpp"

#include <rte_mbuf_dyn.h>

#include <cstring>
#include <functional>
#include <utility>

#include "net/checksum.hpp"
#include "weftio/device/wqe.h"

namespace weftio::nic::soft {

namespace {

/// Distance in bytes. The pointers may belong to different allocations; the result is then arbitrary, or right if these
/// are adjacent.
std::size_t distance(const std::byte* first, const std::byte* second) noexcept
{
    return reinterpret_cast<std::uintptr_t>(second) - reinterpret_cast<std::uintptr_t>(first);
}

} // namespace

pull_stream::pull_stream(std::shared_ptr<devices::copy_queue> copies, frame_memory_list memory, send_pool& pool)
    : memory_(std::move(memory)), pool_(pool), slots_(slots), headers_(pool.make(slots)), stream_(std::move(copies))
{}

/// Drivers may hold frames until the port's device is closed, so the pool keeps headers and memory.
pull_stream::~pull_stream()
{
    pool_.take(std::move(headers_), slots);
    pool_.keep(std::move(memory_));
}

bool pull_stream::is_free(std::uint32_t number) noexcept
{
    return headers_[number].returned() && (slots_[number].batch == 0 || stream_.completed(slots_[number].batch));
}

std::uint32_t pull_stream::free_slots() noexcept
{
    std::uint32_t count = 0;
    for (std::uint32_t number = 0; number != slots; ++number)
        count += is_free(number);
    return count;
}

rte_mbuf* pull_stream::begin(std::uint32_t bytes) noexcept
{
    for (std::uint32_t tried = 0; tried != slots; ++tried) {
        const std::uint32_t number = next_;
        next_ = (next_ + 1) % slots;
        if (!is_free(number))
            continue;
        headers_[number].attach(memory_.front().block->begin() + std::size_t{number} * slot_bytes, bytes);
        return &headers_[number].mbuf;
    }
    return nullptr;
}

void pull_stream::bring(std::byte* to, const std::byte* from, std::size_t bytes) noexcept
{
    if (!joins(to, from, bytes)) {
        start_run();
        run_ = {to, from, {.bytes = bytes, .count = 0, .to_stride = slot_bytes, .from_stride = 0}};
    }
    if (run_.shape.count == 1)
        run_.shape.from_stride = distance(run_.from, from);
    ++run_.shape.count;
}

/// Whether these bytes continue the run as its next row.
bool pull_stream::joins(const std::byte* to, const std::byte* from, std::size_t bytes) const noexcept
{
    constexpr std::size_t most_stride = 1 << 20;
    const auto& shape = run_.shape;
    if (shape.count == 0 || shape.bytes != bytes || to != run_.to + shape.count * slot_bytes)
        return false;
    const std::size_t apart = distance(run_.from, from);
    return shape.count == 1 ? apart >= bytes && apart <= most_stride : apart == shape.count * shape.from_stride;
}

void pull_stream::start_run() noexcept
{
    if (run_.shape.count == 1)
        stream_.copy(run_.to, run_.from, run_.shape.bytes);
    else if (run_.shape.count != 0)
        stream_.copy(run_.to, run_.from, run_.shape);
    run_ = {};
}

void pull_stream::end_batch() noexcept
{
    start_run();
    stream_.end_batch();
}

bool pull_stream::is_here(const rte_mbuf& frame) const noexcept
{
    const auto* head = reinterpret_cast<const send_header*>(&frame); // the mbuf is the first member of its header
    return !std::less<>()(head, &headers_[0]) && std::less<>()(head, &headers_[0] + slots);
}

pull_stream::slot& pull_stream::slot_of(const rte_mbuf& frame) noexcept
{
    return slots_[static_cast<std::size_t>(reinterpret_cast<const send_header*>(&frame) - &headers_[0])];
}

void pull_stream::end(const rte_mbuf& frame, std::uint32_t bytes, std::uint8_t cs_flags) noexcept
{
    slot_of(frame) = {.batch = stream_.batch(), .bytes = bytes, .cs_flags = cs_flags};
}

rte_mbuf* pull_stream::whole(rte_mbuf* frame, const dpdk::port_queue& port_queue) noexcept
{
    if (!is_here(*frame))
        return frame;
    slot& slot = slot_of(*frame);
    if (slot.batch != 0) {
        if (!stream_.completed(slot.batch))
            return nullptr;
        slot.batch = 0;
        net::fill_checksums({reinterpret_cast<std::uint8_t*>(bytes_of(*frame)), slot.bytes},
                            (slot.cs_flags & WEFTIO_ETH_L3_CHECKSUM) != 0,
                            (slot.cs_flags & WEFTIO_ETH_L4_CHECKSUM) != 0);
    }
    if (memory_.front().zero_copy)
        return frame;
    rte_mbuf* const copy = rte_pktmbuf_alloc(port_queue.copies);
    if (!copy)
        return nullptr;
    std::memcpy(rte_pktmbuf_append(copy, frame->data_len), frame->buf_addr, frame->data_len);
    if ((frame->ol_flags & port_queue.timestamp_flag) != 0) {
        *RTE_MBUF_DYNFIELD(copy, port_queue.timestamp_offset, rte_mbuf_timestamp_t*) =
            *RTE_MBUF_DYNFIELD(frame, port_queue.timestamp_offset, rte_mbuf_timestamp_t*);
        copy->ol_flags |= port_queue.timestamp_flag;
    }
    rte_pktmbuf_free(frame);
    return copy;
}

} // namespace weftio::nic::soft
