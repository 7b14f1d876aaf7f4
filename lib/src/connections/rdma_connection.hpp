// The members of an rdma_connection, and what connects its queue pair.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cm/agreement.hpp"
#include "connections/patient_call.hpp"
#include "connections/shared_manager.hpp"
#include "weftio/rdma_connect.hpp"

namespace weftio {

namespace connections {

/// Disconnects in its destructor.
struct held_connection {
    /// @throws weftio::error as manager_lease
    held_connection(const rdma_device& at, std::shared_ptr<connection_end> events) : manager(at), end(std::move(events))
    {}
    held_connection(const held_connection&) = delete;
    held_connection& operator=(const held_connection&) = delete;
    ~held_connection();

    void disconnect();

    manager_lease manager;
    const std::shared_ptr<connection_end> end;
    std::uint32_t id = 0; ///< 0: none yet
    std::string peer_address;
    std::uint16_t peer_port = 0;
    std::vector<std::uint8_t> data;
};

/// @param what  of an error: "rdma_connect to 10.0.0.1, port 18515"
/// @throws weftio::error errc::invalid_argument
std::shared_ptr<rdma::connectable> require_connectable(const patient_call& what, const rdma::local_addresses& at,
                                                       const rdma_queue& queue);
void require_private_data(const patient_call& what, const std::vector<std::uint8_t>& data, std::size_t most);

/// What this end can do, with a PSN for what it receives.
cm::proposal proposal_of(const rdma::connectable& queue);
cm::transport_service transport_of(rdma_service service) noexcept;
const char* name_of(cm::transport_service transport) noexcept;

/// @throws weftio::error as rdma_queue::connect()
void connect(rdma::connectable& queue, const cm::path& way, const cm::agreement& agreed);

} // namespace connections

} // namespace weftio
