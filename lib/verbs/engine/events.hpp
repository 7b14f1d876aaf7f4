// Asynchronous events: what a program hears of its objects and of its port beside completions.
#pragma once

#include "context.hpp"

namespace weftio::verbs {

/// Tells what ends the queue of a pair from now on. Call it once, when the queue has been made.
void watch_failures(context& in, pair& of);

// @pre of the rest: the mutex of the context is held, and GET_CONTEXT was executed

/// Looks what has happened to one queue pair since the last look, and tells it.
void look_for_events(context& in, pair& of);
/// The same for all objects of the context, and for its port.
void look_for_events(context& in);
/// A queue pair is about to be moved to a state: tells what has happened in the one that it leaves.
void leave_state(context& in, pair& of, rdma_state to);
/// It has been moved. @param tells_drained  the program wants to hear when SQD has drained
void enter_state(context& in, pair& of, bool tells_drained);

/// How many asynchronous events about an object the program has read, or will read. Withdraws the unread ones.
/// @param told  events about it  @param user_handle  by which events name it
std::uint32_t end_events(context& in, std::uint32_t told, std::uint64_t user_handle);

} // namespace weftio::verbs
