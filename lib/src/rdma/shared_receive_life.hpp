// The memory of a receive ring that several connections share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nic/completion_backend.hpp"
#include "nic/rdma_backend.hpp"
#include "queues/ring_life.hpp"
#include "weftio/device/rdma/receive.h"

namespace weftio::rdma {

/// A shared receive queue at its NIC with the completion queue of its messages, as ring_life uses a queue.
struct shared_ring_queue {
    std::uint32_t number() const noexcept { return entries->number(); }
    nic::inline_turn turn() noexcept { return completions->turn(); }
    std::string describe(std::uint32_t ring) const;
    /// Stops the queue pairs that use it, because it cannot be stopped itself.
    void stop(std::uint32_t ring);

    std::shared_ptr<nic::shared_receives> entries;
    std::shared_ptr<nic::completion_queue> completions;
    std::vector<std::shared_ptr<nic::rdma_queue>> pairs{};
};

/// The ring, and what kernels need to keep its entries in a list: the entry of each position.
class shared_receive_life final : public queues::ring_life<weftio_dev_rdma_recv, shared_ring_queue> {
 public:
    /// @param depth     entries; a power of two
    /// @param segments  pieces of an entry that are wanted; a power of two, 16 at most
    shared_receive_life(nic::backend& nic, const device& device, std::uint32_t depth, std::uint32_t segments,
                        protection_domain domain);

    std::string describe() const override { return "receives of " + ring_life::describe(); }
    /// What a connection receives from. @param index  that kernels know it by
    nic::rdma_receive_ring of_connection(std::uint32_t index) const;
    void add(std::shared_ptr<nic::rdma_queue> pair) { at_nic_->pairs.push_back(std::move(pair)); }
    nic::shared_receives& entries() const noexcept { return *at_nic_->entries; }
    std::uint32_t depth() const noexcept { return depth_; }

 private:
    weftio_dev_rdma_recv make_handle() const override;
    void link_entries();
    void number_entries();

    const std::uint32_t depth_, stride_; ///< stride in segments: a link, then the pieces
    const std::size_t entries_, posted_, record_;
    const bool needs_flush_;
    memory marks_; ///< a completion and a doorbell that kernels write, the marks of filled entries, and the table
    std::shared_ptr<shared_ring_queue> at_nic_;
};

} // namespace weftio::rdma
