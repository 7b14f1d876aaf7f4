// Ethernet receive queues.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "ctx.hpp"
#include "dev.hpp"
#include "doca_eth_rxq.h"
#include "mmap.hpp"
#include "weftio/eth_rxq.hpp"

struct doca_gpu_eth_rxq;

namespace weftio::doca {

/// Makes the rules of all ports anew, because a queue that pipes may name has started or stopped.
/// @throws weftio::error as flow::install
void refresh_rules();

} // namespace weftio::doca

struct doca_eth_rxq : doca_ctx {
    static constexpr const char* noun = "receive queue";
    /// Zero bytes behind each packet: kernels of the vendor's samples compute checksums that far.
    static constexpr std::uint32_t zeroed_bytes = 40;

    doca_eth_rxq(std::shared_ptr<doca_dev> on, std::uint32_t packets, std::uint32_t packet_bytes);
    ~doca_eth_rxq() override;

    void start() override;
    void stop() override;

    void set_memory(std::shared_ptr<doca_mmap> mmap, std::uint64_t offset, std::uint32_t bytes);
    doca_gpu_eth_rxq* handle() const;

    const std::shared_ptr<doca_dev> dev;
    /// By which pipes name it: above the numbers of DPDK's queues.
    const std::uint16_t flow_number;
    std::optional<weftio::eth_rxq> queue{}; ///< stays after a stop, until the next start, for kernels that still look
    std::atomic<bool> is_receiving = false; ///< pipes may send to it

 private:
    void make_handle(const doca_mmap::registered& range);
    void end_queue();

    const std::uint32_t packets_, packet_bytes_;
    std::shared_ptr<doca_mmap> mmap_;
    std::uint64_t offset_ = 0;
    std::uint32_t bytes_ = 0, stride_ = 0;
    std::shared_ptr<doca_mmap::registered> range_;
    weftio::doca::kernel_table handle_;
};
