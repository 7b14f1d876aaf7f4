// RDMA of one engine of a port: its queue pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nic/soft/engine/unit.hpp"
#include "nic/soft/rdma/packet_trace.hpp"
#include "nic/soft/rdma/pair_commons.hpp"
#include "nic/soft/rdma/queue_pair.hpp"
#include "nic/soft/rdma/roce_arrivals.hpp"
#include "nic/soft/rdma/roce_directory.hpp"
#include "nic/soft/receive/receiver.hpp"

namespace weftio::nic::soft {

/// Of one engine, and called by the engine's thread only, in a turn or in a change between two turns. Functions
/// that change queue pairs are called while every engine of the port is between two turns. Any thread may read the
/// counters.
class rdma_unit final : public unit {
 public:
    /// @param receiver   of the engine; must outlive this, as must `directory` and `rounds`
    /// @param by_packet  see port_options::rdma_by_packet
    rdma_unit(const dpdk::port_queue& port_queue, const keys::nic_keys& keys, receiver& receiver,
              roce_directory& directory, turn_rounds& rounds, bool by_packet);
    rdma_unit(const rdma_unit&) = delete;
    rdma_unit& operator=(const rdma_unit&) = delete;

    unsigned turn(const turn_budget& budget) override;
    void port_lost() noexcept override { commons_.sender.lose_port(); }

    /// Adds a queue pair and returns its number. The memory of the rings must stay valid until remove().
    /// @throws weftio::error errc::out_of_memory
    std::uint32_t add(pair_rings rings, rdma_service service);
    void restart(std::uint32_t number, const pair_rings& rings);
    /// See nic::rdma_queue. @param rings  the present ones
    void modify(std::uint32_t number, rdma_state to, const rdma_connection& how, const pair_rings& rings);
    void remove(std::uint32_t number) noexcept;
    /// See nic::rdma_queue. @pre its service is datagram
    void take_management(std::uint32_t number);
    void attach(std::uint32_t number, const net::roce_gid& group);
    bool detach(std::uint32_t number, const net::roce_gid& group) noexcept;
    any_pair* find(std::uint32_t number) const noexcept
    {
        return static_cast<any_pair*>(commons_.queues.find(number)); // every queue here is one
    }
    /// Calls `each` with the number and the queue pair, for all queue pairs of this engine.
    template <class Each>
    void for_each(Each&& each) const
    {
        const work_list& queues = commons_.queues;
        for (std::uint32_t number = queues.first(); number <= queues.last(); ++number)
            if (any_pair* const queue = find(number))
                each(number, *queue);
    }
    /// How many queue pairs this engine has.
    std::size_t in_use() const noexcept { return commons_.queues.in_use(); }
    /// The directory has changed. @param any  whether the port claims any address
    void addresses_changed(bool any);
    /// Sends an ARP or ND question for `target` from the port's own address `from`. It is lost if there is no room to
    /// send.
    void ask(const net::roce_gid& from, const net::roce_gid& target);

    /// The copies of queue pairs of this engine.
    staged_copies& staged() noexcept { return commons_.staged; }
    /// Has queue pairs of this engine reach memory of a device that the CPU cannot access. From then on, they also
    /// exchange real packets with each other. @pre every engine of the port is between two turns
    void add_staged(std::shared_ptr<devices::device_backend> device, std::unique_ptr<staged_stream> stream);

    roce_arrivals& arrivals() noexcept { return arrivals_; }
    const roce_arrivals& arrivals() const noexcept { return arrivals_; }
    const roce_sender& sent() const noexcept { return commons_.sender; }
    /// Memory of requests and answers in flight, in bytes. Call it between two turns.
    std::size_t bytes_under_way() const noexcept { return commons_.work.pool.in_use(); }

    /// Adds what this engine has counted.
    void count(rdma_port_counters& into) const noexcept;

    /// Starts to keep the last packets. From then on, queue pairs of this engine also exchange real packets.
    void trace_packets();
    /// The kept packets; nullptr: none are kept.
    const packet_trace* trace() const noexcept { return trace_.get(); }

 private:
    unsigned serve_staged();
    void share_packets() noexcept;
    void write_traces_of_failures();
    void set_ways_to_peers() noexcept;

    const keys::nic_keys& keys_;
    receiver& receiver_;
    roce_directory& directory_;
    const bool by_packet_;
    const std::string folder_; ///< for traces of failed queue pairs; empty: none is written
    std::unique_ptr<packet_trace> trace_;
    pair_commons commons_;
    roce_arrivals arrivals_;
    std::uint32_t share_ = any_pair::packets_of_a_turn; ///< most packets of a queue pair in a turn
    rdma_counters of_ended_{};                          ///< sums of the queue pairs that are no longer here
    unsigned ours_before_ = 0;                          ///< what queue pairs have moved in the previous turn
};

} // namespace weftio::nic::soft
