// Finds the kind of NIC that a port's spec names.
#pragma once

#include <memory>
#include <string_view>

#include "nic/backend.hpp"
#include "weftio/options.hpp"

namespace weftio::ports {

/// A kind of NIC and the specs that name it.
struct kind {
    std::string_view prefix; ///< prefix of its specs
    /// Throws what weftio::port::open throws. The caller has checked the options, except for limits that only this kind
    /// knows.
    std::shared_ptr<nic::backend> (*open)(std::string_view spec, const port_options& options);
};

/// Makes `kind` open every spec with its prefix, in preference to kinds added earlier. Any thread.
void add_kind(const kind& kind);

/// Opens what `spec` names: the software NIC, unless a kind was added for it.
std::shared_ptr<nic::backend> open_backend(std::string_view spec, const port_options& options);

} // namespace weftio::ports
