// The calls by which a program sets up DPDK and its port. They stand before DPDK's own, of which they call the next:
// for a port that is not a program_port they do nothing else.
#include <dlfcn.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_lcore.h>

#include "eth_rxq.hpp"
#include "program_port.hpp"

namespace {

using namespace weftio::doca;

/// What NICs compute, and the thread of a program_port has the software NIC compute.
constexpr std::uint64_t send_offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
                                        RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;

template <class Function>
Function* next(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define NEXT(FUNCTION) next<decltype(FUNCTION)>(#FUNCTION)

/// Whether code at this address is the library's own.
bool is_of_library(const void* address)
{
    Dl_info there{}, here{};
    return dladdr(address, &there) != 0 && dladdr(reinterpret_cast<const void*>(&is_of_library), &here) != 0 &&
           there.dli_fbase == here.dli_fbase;
}

/// 0, or -EIO with the reason in the log.
template <class Body>
int status_of(const char* function, Body&& body) noexcept
{
    return call(function, body) == DOCA_SUCCESS ? 0 : -EIO;
}

/// -EIO, with the reason in the log, in a child of fork(): ports are its parent's.
int status_of_process(const char* function) noexcept
{
    return is_child_of_user() ? status_of(function, [] {}) : 0;
}

} // namespace

extern "C" {

/// The program's arguments are for NICs and hugepages that need not be there.
int rte_eal_init(int argc, char** argv)
{
    if (is_of_library(__builtin_return_address(0)))
        return NEXT(rte_eal_init)(argc, argv);
    const int status = status_of(__func__, [] { start_eal(true); });
    return status ? -1 : argc;
}

/// EAL ends with the process: ports of the library are on it.
int rte_eal_cleanup()
{
    return is_of_library(__builtin_return_address(0)) ? NEXT(rte_eal_cleanup)() : 0;
}

int rte_eth_dev_info_get(std::uint16_t port, rte_eth_dev_info* info)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    const int status = NEXT(rte_eth_dev_info_get)(port, info);
    if (status == 0 && program_port::find(port)) {
        info->tx_offload_capa |= send_offloads;
        info->tx_queue_offload_capa |= send_offloads;
    }
    return status;
}

int rte_eth_dev_configure(std::uint16_t port, std::uint16_t receive_queues, std::uint16_t send_queues,
                          const rte_eth_conf* configuration)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    if (!program_port::find(port) || !configuration)
        return NEXT(rte_eth_dev_configure)(port, receive_queues, send_queues, configuration);
    rte_eth_conf accepted{};
    return NEXT(rte_eth_dev_configure)(port, receive_queues, send_queues, &accepted);
}

int rte_eth_rx_queue_setup(std::uint16_t port, std::uint16_t queue, std::uint16_t entries, unsigned socket,
                           const rte_eth_rxconf* configuration, rte_mempool* pool)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    auto* ours = program_port::find(port);
    const int status = NEXT(rte_eth_rx_queue_setup)(port, queue, entries, socket, ours ? nullptr : configuration, pool);
    if (ours && status == 0)
        ours->set_pool(queue, pool);
    return status;
}

int rte_eth_tx_queue_setup(std::uint16_t port, std::uint16_t queue, std::uint16_t entries, unsigned socket,
                           const rte_eth_txconf* configuration)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    return NEXT(rte_eth_tx_queue_setup)(port, queue, entries, socket,
                                        program_port::find(port) ? nullptr : configuration);
}

int rte_flow_isolate(std::uint16_t port, int set, rte_flow_error* error)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    return program_port::find(port) ? 0 : NEXT(rte_flow_isolate)(port, set, error);
}

int rte_eth_dev_start(std::uint16_t port)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    const int status = NEXT(rte_eth_dev_start)(port);
    auto* ours = program_port::find(port);
    if (status || !ours)
        return status;
    return status_of(__func__, [&] {
        ours->start();
        refresh_rules();
    });
}

int rte_eth_dev_stop(std::uint16_t port)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    if (auto* ours = program_port::find(port))
        ours->stop();
    return NEXT(rte_eth_dev_stop)(port);
}

int rte_eth_dev_close(std::uint16_t port)
{
    if (const int refused = status_of_process(__func__))
        return refused;
    auto* ours = program_port::find(port);
    const int status = NEXT(rte_eth_dev_close)(port);
    if (ours && status == 0)
        ours->close();
    return status;
}

} // extern "C"
