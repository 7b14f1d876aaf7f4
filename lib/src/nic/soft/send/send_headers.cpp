#include "nic/soft/send/send_headers.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "core/log.hpp"

namespace weftio::nic::soft {

namespace {

/// Takes headers that a driver has returned to their pool.
class returned_headers final : public dpdk::mbuf_source {
 public:
    int get(rte_mbuf**, unsigned) noexcept override { return -ENOBUFS; }
    void put(rte_mbuf* const* mbufs, unsigned count) noexcept override
    {
        for (unsigned at = 0; at < count; ++at)
            reinterpret_cast<send_header*>(mbufs[at])->detach(); // the mbuf is the first member of its header
    }
};

returned_headers returned;

} // namespace

dpdk::mbuf_source* const own_frames::source = &returned;

send_pool::contents::~contents()
{
    rte_mempool_free(pool);
}

bool send_pool::contents::returned() const noexcept
{
    return std::all_of(headers.begin(), headers.end(), [](const kept_headers& kept) { return kept.attached() == 0; });
}

send_pool::send_pool(std::string port) : port_(std::move(port))
{
    auto made = std::make_unique<contents>();
    contents_ = made.get();
    leftover_.push_back(std::move(made));
}

send_pool::~send_pool()
{
    forget_returned();
    take_out([&](const devices::memory_block& block) { return !uses(block.begin(), block.bytes); });
    std::size_t frames = 0, bytes = 0;
    for (const kept_headers& kept : contents_->headers) {
        frames += kept.attached();
        bytes += kept.depth * sizeof(send_header);
    }
    for (const frame_memory& memory : contents_->memory)
        bytes += memory.block->bytes;
    if (frames == 0)
        return;
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio: port {} is closed, but {} of its sent frames are still held by a driver or a "
                           "receiver; {} bytes that they use are kept until they are returned",
                           port_, frames, bytes);
    });
    dpdk::keep_until_returned(std::move(leftover_));
}

std::unique_ptr<send_header[]> send_pool::make(std::uint32_t depth)
{
    if (!contents_->pool)
        contents_->pool = dpdk::make_objectless_pool(fmt::format("weftio_tx_{}", dpdk::next_pool_number("weftio_tx_")),
                                                     *own_frames::source, UINT16_MAX);
    forget_returned();
    contents_->headers.reserve(contents_->headers.size() + queues_ + 1);
    std::unique_ptr<send_header[]> headers(new send_header[depth]);
    for (std::uint32_t slot = 0; slot < depth; ++slot) {
        rte_mbuf& mbuf = headers[slot].mbuf;
        mbuf = {};
        mbuf.pool = contents_->pool;
        mbuf.nb_segs = 1;
        mbuf.port = RTE_MBUF_PORT_INVALID;
        headers[slot].detach();
    }
    ++queues_;
    return headers;
}

void send_pool::take(std::unique_ptr<send_header[]> headers, std::uint32_t depth) noexcept
{
    --queues_;
    contents_->headers.push_back({std::move(headers), depth});
    forget_returned();
}

void send_pool::forget_returned() noexcept
{
    std::erase_if(contents_->headers, [](const kept_headers& kept) { return kept.attached() == 0; });
}

bool send_pool::uses(const std::byte* begin, std::size_t bytes) const noexcept
{
    auto inside = [&](const std::byte* frame) {
        return !std::less<>()(frame, begin) && std::less<>()(frame, begin + bytes);
    };
    return std::any_of(contents_->headers.begin(), contents_->headers.end(),
                       [&](const kept_headers& kept) { return kept.attached(inside) != 0; });
}

void send_pool::keep(frame_memory_list memory) noexcept
{
    contents_->memory.splice(contents_->memory.end(), memory);
}

} // namespace weftio::nic::soft
