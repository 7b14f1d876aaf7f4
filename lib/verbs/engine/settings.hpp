// What weftio-run was asked for, as it tells the engine: by the environment.
#pragma once

#include <string>

#include "seam.hpp"

namespace weftio::verbs {

struct settings {
    std::string port;            ///< spec of the port; each further device has another one of the same spec
    std::string address;         ///< of the first device; empty: one is made from its MAC
    unsigned devices = 1;        ///< 1 to most_devices
    unsigned doorbell_bytes = 8; ///< of a store that rings: 8, or 64
    std::string dump;            ///< path of the pcapng file of all devices; empty: none

    /// @throws error errc::invalid_argument
    static settings from_environment();
};

} // namespace weftio::verbs
