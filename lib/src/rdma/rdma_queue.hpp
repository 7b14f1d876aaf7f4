// The members of an rdma_queue, for those that several of them share a receive ring.
#pragma once

#include <memory>
#include <optional>

#include "queues/live_queue.hpp"
#include "queues/reported_queue.hpp"
#include "queues/send_life.hpp"
#include "rdma/connectable.hpp"
#include "rdma/pair_attributes.hpp"
#include "rdma/rdma_device.hpp"
#include "rdma/receive_life.hpp"
#include "rdma/shared_receive_life.hpp"

namespace weftio {

namespace rdma {

/// The place of a queue pair among connections that share a receive ring.
struct connection_place {
    std::shared_ptr<shared_receive_life> receives; ///< nullptr: the queue pair has a ring of its own
    std::uint32_t index = 0;                       ///< that kernels know it by
    queues::control_block control{};               ///< of the send rings of all
};

/// The rings of a queue pair from creation or reset to the next reset. A shared receive ring stays.
class pair_life {
 public:
    /// @param needs_flush  queues::needs_flush()
    pair_life(const device& device, const rdma_queue_options& options, nic::window_options windows,
              connection_place place, bool needs_flush);

    nic::rdma_rings begin();
    void belong_to(const std::shared_ptr<nic::rdma_queue>& queue, std::uint32_t ring_number);
    /// The receive ring, as kernels and running kernels see it.
    weftio_dev_rdma_recv* receives() const noexcept;
    devices::lifeline& receive_line() noexcept;

    queues::send_life sends;

 private:
    const nic::window_options windows_;
    const connection_place place_;
    std::optional<receive_life> own_;
};

} // namespace rdma

struct rdma_queue::members final : queues::reported_queue, rdma_receives, rdma::connectable {
    members(std::shared_ptr<const rdma_device::state> port, const device& kernels, const rdma_queue_options& wanted,
            rdma::connection_place among = {});

    std::shared_ptr<rdma::pair_life> make_life() const;
    const char* kind() const noexcept override { return "rdma_queue"; }
    nic::send_queue& reports() noexcept override { return *queue; }
    weftio_dev_rdma_recv* handle() const noexcept override { return queue.life()->receives(); }
    weftio_dev_control* control() const noexcept override { return queue.life()->receive_line().control(); }
    std::shared_ptr<devices::lifeline> line() const noexcept override
    {
        return {queue.life(), &queue.life()->receive_line()};
    }

    const rdma::local_addresses& addresses() const noexcept override { return *at; }
    std::uint32_t queue_number() const noexcept override { return queue->number(); }
    rdma_service service() const noexcept override { return options.service; }
    const nic::rdma_connection& wanted() const noexcept override { return attributes.first(); }
    void require_unconnected() override { attributes.require_unconnected(*queue); }
    void connect(const queue_pair_attributes& agreed) override { attributes.connect(*queue, agreed); }
    void fail() override { queue->stop_sending(); }

    const std::shared_ptr<const rdma_device::state> at;
    const device where;
    const rdma_queue_options options;
    const rdma::connection_place place;
    rdma::pair_attributes attributes;
    queues::live_queue<rdma::pair_life, nic::rdma_queue> queue;
    rdma_address own;
};

} // namespace weftio
