// Which NIC a port's spec names.
#pragma once

#include <memory>
#include <string_view>

#include "nic/backend.hpp"

namespace weftio::nic {

/// A kind of NIC.
struct kind {
    std::string_view prefix; ///< of the specs that it opens
    /// Throws what weftio::port::open says. The options have been checked, but for what only this kind can tell.
    std::shared_ptr<backend> (*open)(std::string_view spec, const port_options& options);
};

/// From now on `kind` opens every spec that begins so, before those added earlier. Any thread.
void add_kind(const kind& kind);

/// Opens what `spec` names: the software NIC, unless a kind was added for it.
std::shared_ptr<backend> open_backend(std::string_view spec, const port_options& options);

} // namespace weftio::nic
