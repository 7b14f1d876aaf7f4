#include "eth_rxq.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "kernel_calls.hpp"
#include "log.hpp"
#include "watch.hpp"

using namespace weftio::doca;

namespace {

constexpr std::uint32_t fewest_packets = 64, most_packets = 65536;

std::uint16_t next_flow_number()
{
    constexpr std::uint32_t first = 0x4000, count = 0x8000;
    static std::atomic<std::uint32_t> made{0};
    return static_cast<std::uint16_t>(first + made++ % count);
}

void require_cyclic(doca_eth_rxq_type type)
{
    require(type == DOCA_ETH_RXQ_TYPE_CYCLIC, DOCA_ERROR_NOT_SUPPORTED,
            "receive queues of type {} are not supported; use DOCA_ETH_RXQ_TYPE_CYCLIC", static_cast<int>(type));
}

} // namespace

doca_eth_rxq::doca_eth_rxq(std::shared_ptr<doca_dev> on, std::uint32_t packets, std::uint32_t packet_bytes)
    : dev(std::move(on)), flow_number(next_flow_number()), packets_(packets), packet_bytes_(packet_bytes)
{}
doca_eth_rxq::~doca_eth_rxq()
{
    if (state == DOCA_CTX_STATE_RUNNING)
        call("doca_eth_rxq_destroy", [this] { stop(); });
    end_queue();
}

/// A kernel that has not left keeps what it reads, until the process ends.
void doca_eth_rxq::end_queue()
{
    if (queue && !end_receive_calls(*queue->control())) {
        log_warning(fmt::format("receive queue {}: a kernel has not returned from its receive call 2 s after the end "
                                "of the queue, whose memory stays allocated; end the kernel before the queue",
                                queue->number()));
        new std::pair(std::move(*queue), std::move(handle_));
    }
    queue.reset();
    handle_ = {};
}

void doca_eth_rxq::start()
{
    require(mmap_ != nullptr, DOCA_ERROR_BAD_STATE,
            "the receive queue has no memory; call doca_eth_rxq_set_pkt_buf first");
    end_queue();
    range_ = mmap_->range();
    require(bytes_ <= range_->bytes && offset_ <= range_->bytes - bytes_, DOCA_ERROR_INVALID_VALUE,
            "bytes {} to {} are beyond the {} bytes of the mmap", offset_, offset_ + bytes_, range_->bytes);
    stride_ = bytes_ / packets_;
    require(stride_ >= 64 + zeroed_bytes, DOCA_ERROR_INVALID_VALUE,
            "{} bytes are {} for each of {} packets; {} are the least", bytes_, stride_, packets_, 64 + zeroed_bytes);
    weftio::eth_rxq_options options{.packets = packets_,
                                    .max_packet_bytes =
                                        std::clamp(std::min(packet_bytes_, stride_ - zeroed_bytes), 64u, 16384u),
                                    .verify_checksums = false,
                                    .region = &range_->region,
                                    .offset_bytes = range_->offset + offset_,
                                    .stride_bytes = stride_,
                                    .consecutive = true,
                                    .zeroed_bytes = zeroed_bytes};
    queue.emplace(dev->port(), device(), options);
    make_handle(*range_);
    is_receiving = true;
    refresh_rules();
    watch(*queue);
}

void doca_eth_rxq::make_handle(const doca_mmap::registered& range)
{
    std::vector<std::byte> content(sizeof(doca_gpu_eth_rxq) + packets_ * sizeof(doca_gpu_buf));
    weftio::doca::kernel_table made(device(), gpu->tables, content.size());
    auto* handle = reinterpret_cast<doca_gpu_eth_rxq*>(content.data());
    auto* slots = reinterpret_cast<doca_gpu_buf*>(handle + 1);
    handle->queue = queue->handle();
    handle->slots = reinterpret_cast<doca_gpu_buf*>(static_cast<doca_gpu_eth_rxq*>(made.device_address()) + 1);
    handle->mask = packets_ - 1;
    const auto first = reinterpret_cast<std::uint64_t>(range.device_address) + offset_;
    const std::uint32_t key = __builtin_bswap32(range.region.lkey(dev->port()));
    for (std::uint64_t slot = 0; slot < packets_; ++slot)
        slots[slot] = {first + slot * stride_, stride_, key, 0};
    made.write(content);
    handle_ = std::move(made);
}

/// Nothing is written into the program's memory afterwards; a receive call that waits ends.
void doca_eth_rxq::stop()
{
    is_receiving = false;
    unwatch(*queue);
    weftio_store_release_sys_u32(&queue->control()->abort, 1);
    refresh_rules();
    if (const auto dropped = queue->counters().out_of_buffer)
        log_warning(fmt::format("receive queue {}: {} packets were dropped, because the kernel was too slow for a ring "
                                "of {} packets",
                                queue->number(), dropped, packets_));
}

void doca_eth_rxq::set_memory(std::shared_ptr<doca_mmap> mmap, std::uint64_t offset, std::uint32_t bytes)
{
    require(bytes, DOCA_ERROR_INVALID_VALUE, "0 bytes for packets");
    require(!mmap->remote, DOCA_ERROR_INVALID_VALUE, "the mmap is memory of a peer");
    require_idle();
    mmap_ = std::move(mmap);
    offset_ = offset;
    bytes_ = bytes;
}

doca_gpu_eth_rxq* doca_eth_rxq::handle() const
{
    require_running();
    return static_cast<doca_gpu_eth_rxq*>(handle_.device_address());
}

doca_error_t doca_eth_rxq_create(doca_dev* dev, std::uint32_t max_packets, std::uint32_t max_packet_bytes,
                                 doca_eth_rxq** rxq)
{
    return call(__func__, [&] {
        auto device = known(dev);
        require(max_packets >= fewest_packets && max_packets <= most_packets, DOCA_ERROR_INVALID_VALUE,
                "{} packets, not {} to {}", max_packets, fewest_packets, most_packets);
        require(max_packet_bytes >= 64 && max_packet_bytes <= 16384, DOCA_ERROR_INVALID_VALUE,
                "packets of {} bytes, not 64 to 16384", max_packet_bytes);
        make_context(rxq, device, std::bit_floor(max_packets), max_packet_bytes);
    });
}
doca_error_t doca_eth_rxq_destroy(doca_eth_rxq* rxq)
{
    return call(__func__, [&] { destroy_context(rxq); });
}
doca_error_t doca_eth_rxq_set_type(doca_eth_rxq* rxq, doca_eth_rxq_type type)
{
    return call(__func__, [&] {
        auto queue = known(rxq);
        require_cyclic(type);
        queue->require_idle();
    });
}
doca_error_t doca_eth_rxq_estimate_packet_buf_size(doca_eth_rxq_type type, std::uint32_t, std::uint32_t,
                                                   std::uint32_t max_packet_bytes, std::uint32_t max_packets,
                                                   std::uint8_t, std::uint32_t* bytes)
{
    return call(__func__, [&] {
        auto& estimate = result(bytes, "bytes");
        require_cyclic(type);
        require(max_packets && max_packet_bytes, DOCA_ERROR_INVALID_VALUE, "{} packets of {} bytes", max_packets,
                max_packet_bytes);
        const auto product = std::uint64_t{max_packets} * max_packet_bytes;
        require(product <= UINT32_MAX, DOCA_ERROR_TOO_BIG, "{} packets of {} bytes are 4 GiB or more", max_packets,
                max_packet_bytes);
        estimate = static_cast<std::uint32_t>(product);
    });
}
doca_error_t doca_eth_rxq_set_pkt_buf(doca_eth_rxq* rxq, doca_mmap* mmap, std::uint64_t offset, std::uint32_t bytes)
{
    return call(__func__, [&] {
        auto queue = known(rxq);
        queue->set_memory(known(mmap), offset, bytes);
    });
}
doca_ctx* doca_eth_rxq_as_doca_ctx(doca_eth_rxq* rxq)
{
    return as_context(__func__, rxq);
}
doca_error_t doca_eth_rxq_get_gpu_handle(const doca_eth_rxq* rxq, doca_gpu_eth_rxq** handle)
{
    return call(__func__, [&] {
        auto* kernels = known(rxq)->handle();
        result(handle, "handle") = kernels;
    });
}
doca_error_t doca_eth_rxq_get_flow_queue_id(doca_eth_rxq* rxq, std::uint16_t* number)
{
    return call(__func__, [&] {
        auto queue = known(rxq);
        queue->require_running();
        result(number, "number") = queue->flow_number;
    });
}
