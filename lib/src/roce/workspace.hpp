// What the connections of one engine share, of which one at a time has its turn.
#pragma once

#include "roce/block_pool.hpp"
#include "roce/transport.hpp"

namespace weftio::roce {

/// It must outlive the requesters and responders that share it, and is used by the thread that drives them.
struct workspace {
    pieces found;    ///< payload of the packet that is sent
    block_pool pool; ///< messages in flight, answers and results of READs and atomics
};

} // namespace weftio::roce
