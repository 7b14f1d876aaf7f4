// Devices and the ports behind them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "doca_dev.h"
#include "object.hpp"
#include "weftio/port.hpp"

/// A port that WEFTIO_DOCA_DEVICES names. Lives as long as the process.
struct doca_devinfo {
    static constexpr const char* noun = "device information";

    std::string pci, ibdev, spec;

    /// The port, opened unless somebody holds it. @throws weftio::error as weftio::port::open
    std::shared_ptr<weftio::port> open();

 private:
    std::mutex mutex_;
    std::weak_ptr<weftio::port> port_;
};

struct doca_dev {
    static constexpr const char* noun = "device";

    std::shared_ptr<doca_devinfo> info;
    std::shared_ptr<weftio::port> port;
};

namespace weftio::doca {

/// "0000:b5:00.0" of "b5:00.0", in lower case; empty if `text` is no PCI address.
std::string whole_pci_address(std::string_view text);

/// The devices that WEFTIO_DOCA_DEVICES names at this moment.
/// @throws failure DOCA_ERROR_BAD_CONFIG the variable, or the file that it names, cannot be read
std::vector<std::shared_ptr<doca_devinfo>> configured_devices();

} // namespace weftio::doca
