// What the connections of one engine share. Only one connection at a time uses it.
#pragma once

#include "roce/block_pool.hpp"
#include "roce/transport.hpp"

namespace weftio::roce {

/// Must outlive the requesters and responders that share it. Used only by the thread that drives them.
struct workspace {
    pieces found;    ///< payload of the packet being sent
    block_pool pool; ///< messages in flight, answers and results of READs and atomics
};

} // namespace weftio::roce
