// The attributes of a queue pair of either kind, and how they change with its state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rdma/rdma_device.hpp"
#include "weftio/queue_pair.hpp"

namespace weftio::rdma {

/// @param who  for the error text: "queue_pair 17"
/// @throws weftio::error errc::invalid_argument
void require_range(std::string_view who, const char* name, std::uint32_t value, std::uint32_t least,
                   std::uint32_t most);

/// The same, for a power of two.
void require_power(const char* who, const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most);

std::uint32_t random_psn();

/// Threads: as the object of the user.
class pair_attributes {
 public:
    /// Begins with the defaults, and with the largest path MTU of the port.
    /// @param kind  "queue_pair" or "rdma_queue", for error texts  @param at  must outlive this
    pair_attributes(const char* kind, const local_addresses& at, rdma_service service);

    /// Sets the attributes with which the queue pair begins, now and after each RESET.
    /// @throws weftio::error errc::invalid_argument a value is out of range
    void begin_with(const queue_pair_attributes& given) { present_ = first_ = with(kind_, given); }
    /// Path attributes with which connect() begins.
    void begin_with(std::uint8_t traffic_class, std::uint8_t hop_limit) noexcept
    {
        first_.path.traffic_class = present_.path.traffic_class = traffic_class;
        first_.path.hop_limit = present_.path.hop_limit = hop_limit;
    }
    /// The queue pair was reset.
    void begin_again(std::uint32_t send_psn) noexcept
    {
        first_.send_psn = send_psn;
        present_ = first_;
    }

    /// See queue_pair::modify().
    void modify(nic::rdma_queue& queue, rdma_state to, const queue_pair_attributes& given);
    /// From RESET or INIT to RTS. See rdma_queue::connect().
    void connect(nic::rdma_queue& queue, const rdma_address& peer);
    /// The same, with the attributes that both ends have agreed on.
    void connect(nic::rdma_queue& queue, const queue_pair_attributes& agreed);
    /// @return RESET or INIT  @throws weftio::error errc::invalid_argument it is UD, or in another state
    rdma_state require_unconnected(const nic::rdma_queue& queue) const;
    /// UD: from INIT to RTS.
    void begin_datagrams(nic::rdma_queue& queue);
    /// See queue_pair::attach() and detach().
    void attach(nic::rdma_queue& queue, const std::string& group) const { queue.attach(group_of(queue, group)); }
    void detach(nic::rdma_queue& queue, const std::string& group) const;
    /// What the peer needs to connect. @param number  of the queue pair
    rdma_address address(std::uint32_t number, std::uint32_t send_psn) const;

    const nic::rdma_connection& first() const noexcept { return first_; }
    const nic::rdma_connection& present() const noexcept { return present_; }

 private:
    nic::rdma_connection with(const std::string& who, const queue_pair_attributes& given) const;
    void require_path_mtu(const std::string& who, std::uint32_t path_mtu) const;
    void set_path(const std::string& who, const queue_pair_attributes& given, net::roce_path& path) const;
    std::string name_of(const nic::rdma_queue& queue) const;
    net::roce_gid group_of(const nic::rdma_queue& queue, const std::string& text) const;

    const char* const kind_;
    const local_addresses& at_;
    const rdma_service service_;
    nic::rdma_connection first_;   ///< after RESET
    nic::rdma_connection present_; ///< set since RESET
};

} // namespace weftio::rdma
