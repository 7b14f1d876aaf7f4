// What a doca_flow_match means.
#pragma once

#include <optional>

#include "doca_flow.h"
#include "weftio/flow_match.hpp"

namespace weftio::doca {

/// The conditions of an entry: the pipe's match, with the entry's value where the pipe's is all ones.
/// @param mask   nullptr: every field that is not 0 is compared
/// @param entry  nullptr: no value
/// @throws failure DOCA_ERROR_NOT_SUPPORTED a mask that rules do not have
flow_match conditions(const doca_flow_match& pipe, const doca_flow_match* mask, const doca_flow_match* entry);

/// The packets that both match; none if no packet does.
std::optional<flow_match> both(const flow_match& one, const flow_match& other);

} // namespace weftio::doca
