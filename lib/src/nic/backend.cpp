#include "nic/backend.hpp"

#include <fmt/format.h>

#include "nic/completion_backend.hpp"
#include "nic/rdma_backend.hpp"
#include "weftio/error.hpp"

namespace weftio::nic {

namespace {

[[noreturn]] void refuse_rdma(const backend& port, std::string_view who)
{
    throw error(errc::not_supported, fmt::format("weftio: {}: the NIC of port {} has no RDMA; open a port of the "
                                                 "software NIC, such as loopback or iface:NAME",
                                                 who, port.spec()));
}

} // namespace

std::shared_ptr<completion_queue> backend::make_completion_queue(const completion_memory&)
{
    refuse_rdma(*this, "completion_queue");
}

ring_end completion_queue::resize(const completion_memory&)
{
    throw error(
        errc::not_supported,
        fmt::format(
            "weftio: completion_queue {}: its NIC cannot resize it; create another one, and queue pairs that use it",
            number()));
}

void rdma_queue::attach(const net::roce_gid&)
{
    throw error(errc::not_supported, fmt::format("weftio: queue_pair {}: its NIC has no multicast groups", number()));
}

void rdma_queue::take_management()
{
    throw error(errc::not_supported,
                fmt::format("weftio: queue_pair {}: its NIC keeps management datagrams to itself", number()));
}

bool rdma_queue::detach(const net::roce_gid&)
{
    return false;
}

std::shared_ptr<rdma_queue> backend::make_rdma_queue(const rdma_rings&, rdma_service)
{
    refuse_rdma(*this, "rdma_queue");
}

std::shared_ptr<shared_receives> backend::make_shared_receives(const shared_receive_ring&)
{
    refuse_rdma(*this, "shared_receives");
}

std::unique_ptr<window> backend::make_window(window_type, protection_domain)
{
    refuse_rdma(*this, "memory_window");
}

std::unique_ptr<held_rdma_address> backend::add_rdma_address(const rdma_own_address&)
{
    refuse_rdma(*this, "rdma_device");
}

void require_engine(const backend& port, std::string_view who, unsigned engine)
{
    if (engine >= port.engine_count())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: no engine {} at port {}, which has {}, counted from 0; name one of these, "
                                "or open the port with more .engines",
                                who, engine, port.spec(), port.engine_count()));
}

void require_engine_or_any(const backend& port, std::string_view who, int engine)
{
    if (engine < -1)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: engine is {}; set an engine, counted from 0, or -1 to let the port choose",
                                who, engine));
    if (engine >= 0)
        require_engine(port, who, static_cast<unsigned>(engine));
}

} // namespace weftio::nic
