// Whether two rules can match the same packet.
#pragma once

#include "weftio/flow_match.hpp"

namespace weftio::nic::soft {

/// Whether a packet could match both. Never false when a packet could; may be true when none can.
bool may_overlap(const flow_match& a, const flow_match& b) noexcept;

} // namespace weftio::nic::soft
