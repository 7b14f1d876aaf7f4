// Devices and the ports behind them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "doca_dev.h"
#include "object.hpp"
#include "program_port.hpp"
#include "weftio/dma.hpp"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"
#include "weftio/rdma.hpp"

namespace weftio::doca {

/// A device that somebody uses.
struct opened_device {
    std::unique_ptr<program_port> dpdk; ///< made first, so that the first device's has number 0
    weftio::port port;
};

} // namespace weftio::doca

/// A port that WEFTIO_DOCA_DEVICES names. Lives as long as the process.
struct doca_devinfo {
    static constexpr const char* noun = "device information";

    std::string pci, ibdev;
    std::string address; ///< of RDMA; empty: one that is made from the MAC
    std::string spec;

    /// The device, opened unless somebody holds it. @throws weftio::error as weftio::port::open
    std::shared_ptr<weftio::doca::opened_device> open();
    /// Its RDMA device at `address`, or at the link-local address of its MAC, made unless somebody holds it.
    /// @throws weftio::error as weftio::rdma_device
    std::shared_ptr<weftio::rdma_device> rdma(const weftio::port& port, bool is_link_local);

 private:
    std::mutex mutex_;
    std::weak_ptr<weftio::doca::opened_device> opened_;
    std::array<std::weak_ptr<weftio::rdma_device>, 2> rdma_;
};

struct doca_dev {
    static constexpr const char* noun = "device";
    static constexpr std::uint32_t gids = 4; ///< numbered as those of a ConnectX: IPv4 is 3, which guides name

    explicit doca_dev(std::shared_ptr<doca_devinfo> of) : info(std::move(of)), opened(info->open()) {}

    const std::shared_ptr<doca_devinfo> info;
    const std::shared_ptr<weftio::doca::opened_device> opened;

    const weftio::port& port() const { return opened->port; }

    /// Memory of an mmap that has this device: its port, and its DMA engine from the moment when there is one, may
    /// access it. @throws weftio::error as memory_region::register_with
    void add(const std::shared_ptr<weftio::memory_region>& region);
    /// The engine that copies memory, made unless there is one. @throws weftio::error as weftio::dma_engine
    const weftio::dma_engine& dma();
    /// The RDMA device that has this GID. @throws weftio::error as weftio::rdma_device
    std::shared_ptr<weftio::rdma_device> rdma(std::uint32_t gid_index);

 private:
    std::optional<weftio::dma_engine> dma_;
    std::array<std::shared_ptr<weftio::rdma_device>, 2> rdma_; ///< so that it stays between two contexts
    std::vector<std::weak_ptr<weftio::memory_region>> regions_;
};

namespace weftio::doca {

/// Leaves a region the rights of this side, under the same key. Blocks for an iteration of the engines.
/// @throws weftio::error as memory_region::replace
void withdraw_from_peers(weftio::memory_region& region, const weftio::memory& memory);

/// "0000:b5:00.0" of "b5:00.0", in lower case; empty if `text` is no PCI address.
std::string whole_pci_address(std::string_view text);

/// The devices that WEFTIO_DOCA_DEVICES names at this moment.
/// @throws failure DOCA_ERROR_BAD_CONFIG the variable, or the file that it names, cannot be read
std::vector<std::shared_ptr<doca_devinfo>> configured_devices();

} // namespace weftio::doca
