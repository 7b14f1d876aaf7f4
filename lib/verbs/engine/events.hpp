// Asynchronous events: what is reported to a program about its objects and its port, in addition to completions.
#pragma once

#include "context.hpp"

namespace weftio::verbs {

/// From now on, reports failures that end this queue pair. Call it once, when the queue has been made.
void watch_failures(context& in, pair& of);

// @pre of the functions below: the mutex of the context is held, and GET_CONTEXT was executed

/// Polls one queue pair, and sends its events since the last poll.
void poll_events(context& in, pair& of);
/// The same for all objects of the context and its port.
void poll_events(context& in);
/// Sends the events of a shared receive queue.
void poll_events(context& in, shared& of);
/// Call it before a change of state: sends the events of the state that the queue pair leaves.
void leave_state(context& in, pair& of, rdma_state to);
/// Call it after a change of state. @param tells_drained  the program requests SQ_DRAINED
void enter_state(context& in, pair& of, bool tells_drained);

/// Withdraws the unread asynchronous events about an object. Returns how many the program has read or is about to read.
/// @param reported  events sent about it  @param user_handle  names it in events
std::uint32_t end_events(context& in, std::uint32_t reported, std::uint64_t user_handle);

} // namespace weftio::verbs
