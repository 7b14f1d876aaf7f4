// The options of weftio-run, which the engine reads from the environment.
#pragma once

#include <string>

#include "seam.hpp"

namespace weftio::verbs {

/// What happens when an entry or a peer names memory whose pages have gone since it was registered.
enum class stale_mode { report, fail, off };

struct settings {
    std::string port;            ///< spec of the port; further devices use another port of the same spec
    std::string address;         ///< address of the first device; empty: made from its MAC
    unsigned devices = 1;        ///< 1 to most_devices
    unsigned doorbell_bytes = 8; ///< size of a doorbell store: 8 or 64
    std::string dump;            ///< path of the pcapng file of all devices; empty: none
    stale_mode stale = stale_mode::report;
    bool stale_asked_for = false; ///< the user has named it

    /// @throws error errc::invalid_argument
    static settings from_environment();
};

} // namespace weftio::verbs
