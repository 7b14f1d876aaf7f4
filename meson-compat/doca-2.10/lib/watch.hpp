// Tells of kernels that do not receive any more. Programs launch them by CUDA, so that only the queues know of them.
#pragma once

#include "weftio/eth_rxq.hpp"

namespace weftio::doca {

/// From now on a thread looks at the queue twice a second. A kernel that has used it is reported in the log, once until
/// it goes on, when for 2 s it gives no sign of life inside a receive call, or does not call while packets are dropped.
/// Any thread.
void watch(const eth_rxq& queue);
/// Call it before the queue is destroyed or moved. Does nothing for a queue that is not watched. Any thread.
void unwatch(const eth_rxq& queue) noexcept;

} // namespace weftio::doca
