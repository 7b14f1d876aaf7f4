// The connection manager of a process, as librdmacm sees the kernel's: identifiers, and what they wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "connections/agent.hpp"
#include "engine/node.hpp"
#include "rdma_cm/file.hpp"
#include "rdma_cm/identifier.hpp"

namespace weftio::verbs::rdma_cm {

/// Any thread. Functions of the commands are called with the mutex held.
class service {
 public:
    /// @param nodes  must outlive this
    explicit service(std::deque<node>& nodes);
    service(const service&) = delete;
    service& operator=(const service&) = delete;
    /// @pre no file is open
    ~service();

    std::shared_ptr<open_file> open(int flags);
    /// For weftio-run --show.
    std::string show();
    /// Ends the identifiers of a file that nobody has open.
    void forget(file& closed) noexcept;

    std::mutex mutex;

    // What commands do. @throws failure
    std::uint32_t create(file& in, std::uint64_t user_handle, cm::port_space space, bool datagrams);
    /// @throws failure ENOENT, EINVAL it is of another file
    identifier& find(const file& in, std::uint32_t number);
    /// @param number  the program's descriptor of the file  @return how many events were reported
    std::uint32_t destroy(file& in, int number, std::uint32_t which);
    void bind(identifier& one, const socket_address& to);
    void listen(identifier& one, std::size_t backlog);
    /// @param timeout  of the answer; negative: none
    void resolve_address(identifier& one, const std::optional<socket_address>& from, const socket_address& to,
                         std::chrono::milliseconds timeout);
    void resolve_route(identifier& one);
    void connect(identifier& one, const rdma_ucm_conn_param& with);
    void accept(identifier& one, std::uint64_t user_handle, const rdma_ucm_conn_param& with);
    void reject(identifier& one, std::uint8_t reason, std::span<const std::uint8_t> data);
    void disconnect(identifier& one);
    /// A packet of the peer has arrived at the queue pair.
    void notice(identifier& one);
    std::uint32_t join(identifier& one, std::uint64_t user_handle, const socket_address& group);
    std::uint32_t leave(file& in, int number, std::uint32_t which);
    /// Moves an identifier and its unread events to another file. @return how many events were reported
    std::uint32_t migrate(file& to, int from_number, std::uint32_t which);
    /// Counts an event that the program reads.
    void note_delivered(const waiting_event& event);

    const node& device_of(const identifier& one) const { return nodes_[*one.device]; }

 private:
    using at_node = std::pair<unsigned, std::uint32_t>; ///< node, and number at its manager

    connections::agent& agent_of(unsigned device);
    identifier& add(file* in);
    void end(identifier& one);
    void forget_unread(file& in, int number, std::uint32_t which);

    std::optional<unsigned> gid_of_kind(unsigned device, const net::roce_gid& like) const;
    void use_device(identifier& one, unsigned device, unsigned gid_index);
    void choose_device(identifier& one, const net::roce_gid& peer);
    std::optional<std::pair<unsigned, unsigned>> place_of(const net::roce_gid& local) const;
    bool is_common(const socket_address& of) const;
    net::roce_gid reachable(const identifier& one, const socket_address& to) const;
    void find_owner(std::uint32_t which);
    void begin(identifier& one, const rdma_ucm_conn_param& with);
    void begin_late(std::uint32_t which, bool reachable);
    bool has_listener_of_other_family(const identifier& one) const;
    bool listen_at(identifier& one, unsigned device, const net::roce_gid& local);
    std::uint16_t free_port(cm::port_space space);
    static socket_address local_for(const identifier& one);
    void take_port(identifier& one);
    void claim_port(identifier& one, family of);
    [[noreturn]] void refuse_port(std::uint16_t port, const std::string& owner) const;
    bool is_taken_here(const identifier& one) const;
    bool ask_for_peer(identifier& one);
    void found(std::uint32_t which, bool reachable);
    void begin_connection(identifier& one, const rdma_ucm_conn_param& with);
    void begin_resolution(identifier& one, const rdma_ucm_conn_param& with);

    void take(unsigned device, const cm::event& next);
    void tell_request(unsigned device, const cm::event& next);
    identifier* listener_for(unsigned device, const cm::event& next, family of);
    identifier* take_request(unsigned device, const cm::event& next, identifier& asked);
    void tell(identifier& one, rdma_ucm_event_resp says, identifier* about = nullptr);

    std::deque<node>& nodes_;
    const std::vector<std::vector<net::roce_gid>> gids_; ///< of each node
    std::vector<std::unique_ptr<connections::agent>> agents_;
    service_ports ports_;
    std::map<std::uint32_t, identifier> identifiers_;
    std::map<std::uint32_t, membership> memberships_;
    std::map<at_node, std::uint32_t> by_connection_, by_listener_;
    std::uint32_t last_number_ = 0;
    std::uint16_t last_port_ = 0;
};

/// The answer to INIT_QP_ATTR: attributes for a move of the queue pair to this state (enum ibv_qp_state).
/// @throws failure EINVAL
ib_uverbs_qp_attr attributes_for(const identifier& one, const node& device, std::uint32_t state);
/// How datagrams reach an address.
ib_uverbs_ah_attr address_handle(const identifier& one, const net::roce_gid& to) noexcept;

} // namespace weftio::verbs::rdma_cm
