// Devices and the ports behind them.
#pragma once

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

    std::string pci, ibdev, spec;

    /// The device, opened unless somebody holds it. @throws weftio::error as weftio::port::open
    std::shared_ptr<weftio::doca::opened_device> open();

 private:
    std::mutex mutex_;
    std::weak_ptr<weftio::doca::opened_device> opened_;
};

struct doca_dev {
    static constexpr const char* noun = "device";

    explicit doca_dev(std::shared_ptr<doca_devinfo> of) : info(std::move(of)), opened(info->open()) {}

    const std::shared_ptr<doca_devinfo> info;
    const std::shared_ptr<weftio::doca::opened_device> opened;

    const weftio::port& port() const { return opened->port; }

    /// Memory of an mmap that has this device: its port, and its DMA engine from the moment when there is one, may
    /// access it. @throws weftio::error as memory_region::register_with
    void add(const std::shared_ptr<weftio::memory_region>& region);
    /// The engine that copies memory, made unless there is one. @throws weftio::error as weftio::dma_engine
    const weftio::dma_engine& dma();

 private:
    std::optional<weftio::dma_engine> dma_;
    std::vector<std::weak_ptr<weftio::memory_region>> regions_;
};

namespace weftio::doca {

/// "0000:b5:00.0" of "b5:00.0", in lower case; empty if `text` is no PCI address.
std::string whole_pci_address(std::string_view text);

/// The devices that WEFTIO_DOCA_DEVICES names at this moment.
/// @throws failure DOCA_ERROR_BAD_CONFIG the variable, or the file that it names, cannot be read
std::vector<std::shared_ptr<doca_devinfo>> configured_devices();

} // namespace weftio::doca
