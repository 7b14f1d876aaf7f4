// Whether two rules can match the same packet.
#pragma once

#include "weftio/flow.hpp"

namespace weftio::nic {

/// Whether a packet could match both. Never false when a packet could; may be true when none can.
bool may_overlap(const flow_match& a, const flow_match& b) noexcept;

} // namespace weftio::nic
