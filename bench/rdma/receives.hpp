// SENDs to a receive ring of the queue pair, and to one that connections share.
#pragma once

#include "rdma/setup.hpp"

namespace weftio::bench {

enum class receive_ring { own, shared };

/// SENDs of `bytes` bytes a second by one connection. The calling thread also takes the messages and posts their
/// receives again, in the same way for both rings. @pre one port in inline mode
double sent_and_taken(const rdma_setup& setup, receive_ring ring, std::uint32_t bytes, double seconds);
/// The same by datagrams, to a ring of the receiving queue pair.
double datagrams_taken(const rdma_setup& setup, std::uint32_t bytes, double seconds);

} // namespace weftio::bench
