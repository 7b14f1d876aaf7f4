// Queue pairs that cannot be destroyed yet, because windows of type 2A are bound by them.
#pragma once

#include <memory>
#include <string_view>

#include "nic/rdma_backend.hpp"

namespace weftio::rdma {

/// @throws weftio::error errc::in_use windows of type 2A are bound by the queue pair. @param who  for the error text
void require_no_windows(std::string_view who, const nic::rdma_queue& queue);
/// Its owner is gone. While windows of type 2A are bound by the queue pair, keeps `members`, which have all that it
/// needs, and logs how many there are. Else does nothing. @pre the queue pair has been stopped
void keep_while_bound(std::string_view who, const nic::rdma_queue& queue, std::shared_ptr<void> members) noexcept;
/// Lets go of those that need not be kept any more. Called when the host has freed windows.
void end_kept_pairs() noexcept;

} // namespace weftio::rdma
