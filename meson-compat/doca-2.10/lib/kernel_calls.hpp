// Ends device functions that wait on a queue whose memory is about to go.
#pragma once

#include "weftio/device/queue/control.h"

namespace weftio::doca {

/// Raises the abort flag, and blocks for 2 ms: waits of device functions read the flag every few microseconds, and have
/// returned then.
void end_waits(weftio_dev_control& control) noexcept;

/// The same for a receive queue, whose calls tell when they have returned. Blocks for up to 2 s more.
/// @return false if a receive call has not returned: a kernel still reads the memory of the queue
bool end_receive_calls(weftio_dev_control& control) noexcept;

} // namespace weftio::doca
