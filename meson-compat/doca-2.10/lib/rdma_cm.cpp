// Connections of RDMA contexts by the connection manager.
#include <arpa/inet.h>

#include <algorithm>
#include <chrono>

#include "rdma.hpp"

using namespace weftio::doca;

namespace {

/// The IPv4 address in an IPv6 address that maps it; else the same text.
std::string without_map(const in6_addr& address, const char* text)
{
    char ipv4[INET_ADDRSTRLEN] = {};
    if (IN6_IS_ADDR_V4MAPPED(&address) && inet_ntop(AF_INET, &address.s6_addr[12], ipv4, sizeof ipv4))
        return ipv4;
    return text;
}

/// The address as Weftio takes it.
/// @throws failure DOCA_ERROR_INVALID_VALUE
std::string checked(doca_rdma_addr_type type, const char* text)
{
    require(text, DOCA_ERROR_INVALID_VALUE, "the address is a null pointer");
    in6_addr address{};
    const bool is_ipv4 = type == DOCA_RDMA_ADDR_TYPE_IPv4;
    require(is_ipv4 || type == DOCA_RDMA_ADDR_TYPE_IPv6 || type == DOCA_RDMA_ADDR_TYPE_GID, DOCA_ERROR_INVALID_VALUE,
            "{} is no type of an address", static_cast<int>(type));
    require(inet_pton(is_ipv4 ? AF_INET : AF_INET6, text, &address) == 1, DOCA_ERROR_INVALID_VALUE,
            "\"{}\" is no {} address", text, is_ipv4 ? "IPv4" : "IPv6");
    return is_ipv4 ? text : without_map(address, text);
}

} // namespace

void doca_rdma::listen(std::uint16_t port)
{
    require(connected, DOCA_ERROR_BAD_STATE, "requests are told by a progress engine; call doca_pe_connect_ctx first");
    listeners_.emplace(port, weftio::rdma_listener(*at_, port));
}

void doca_rdma::stop_listening(std::uint16_t port)
{
    require(listeners_.erase(port) == 1, DOCA_ERROR_NOT_FOUND, "the context does not listen at {}", port);
}

bool doca_rdma::hear_requests()
{
    bool has_worked = false;
    for (auto& [port, listener] : listeners_)
        while (auto request = listener.try_next()) {
            has_worked = true;
            if (!on_request)
                continue; // its destructor rejects it
            auto connection = std::make_shared<doca_rdma_connection>(weak_from_this(), life::requested);
            connection->request.emplace(std::move(*request));
            living<doca_rdma_connection>::add(connection);
            requests_.push_back(connection);
            tell(event::request, connection);
        }
    return has_worked;
}

/// What has become of a connection since the last call.
void doca_rdma::hear(const connection_pointer& connection)
{
    if (connection->state == life::connecting &&
        connection->pending.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
        try {
            connection->held.emplace(connection->pending.get());
            set_established(connection);
        } catch (...) {
            current_failure("doca_rdma_connect_to_addr");
            connection->state = life::ended;
            tell(event::failure, connection);
        }
    }
    if (connection->state == life::established && connection->peer_has_left)
        end(connection);
}

void doca_rdma::connect_to(const doca_rdma_addr& address, doca_data user_data_of_connection)
{
    require(connected, DOCA_ERROR_BAD_STATE, "a progress engine tells how it ends; call doca_pe_connect_ctx first");
    const auto connection = add(life::connecting);
    connection->user_data = user_data_of_connection;
    connection->pending = std::async(
        std::launch::async, [at = at_, to = address, &own = queue(connection->index), options = connection->options()] {
            return weftio::rdma_connect(*at, to.address, to.port, own, options);
        });
}

void doca_rdma::accept(const connection_pointer& connection, std::vector<std::uint8_t> private_data)
{
    require(connection->state == life::requested, DOCA_ERROR_BAD_STATE, "it is no request, or was answered already");
    place(connection);
    try {
        auto options = connection->options();
        options.private_data = std::move(private_data);
        connection->held.emplace(connection->request->accept(queue(connection->index), std::move(options)));
    } catch (...) {
        leave(connection);
        throw;
    }
    connection->request.reset();
    std::erase(requests_, connection);
    set_established(connection);
}

doca_error_t doca_rdma_start_listen_to_port(doca_rdma* rdma, std::uint16_t port)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        context->require_running();
        context->listen(port);
    });
}
doca_error_t doca_rdma_stop_listen_to_port(doca_rdma* rdma, std::uint16_t port)
{
    return call(__func__, [&] { known(rdma)->stop_listening(port); });
}
doca_error_t doca_rdma_addr_create(doca_rdma_addr_type type, const char* address, std::uint16_t port,
                                   doca_rdma_addr** addr)
{
    return call(__func__, [&] {
        result(addr, "addr");
        require(port, DOCA_ERROR_INVALID_VALUE, "port 0 is no port");
        make(addr, doca_rdma_addr{checked(type, address), port});
    });
}
doca_error_t doca_rdma_addr_destroy(doca_rdma_addr* addr)
{
    return call(__func__, [&] { living<doca_rdma_addr>::remove(addr); });
}
doca_error_t doca_rdma_connect_to_addr(doca_rdma* rdma, doca_rdma_addr* addr, doca_data connection_user_data)
{
    return call(__func__, [&] {
        auto context = known(rdma);
        auto address = known(addr);
        context->require_running();
        context->connect_to(*address, connection_user_data);
    });
}
doca_error_t doca_rdma_connection_accept(doca_rdma_connection* connection, void* private_data,
                                         std::size_t private_data_bytes)
{
    return call(__func__, [&] {
        auto one = known(connection);
        auto context = one->rdma.lock();
        require(context != nullptr, DOCA_ERROR_INVALID_VALUE, "the context of the connection was destroyed");
        require(private_data || !private_data_bytes, DOCA_ERROR_INVALID_VALUE, "the private data is a null pointer");
        context->require_running();
        const auto* bytes = static_cast<const std::uint8_t*>(private_data);
        context->accept(one, bytes ? std::vector<std::uint8_t>(bytes, bytes + private_data_bytes)
                                   : std::vector<std::uint8_t>{});
    });
}
