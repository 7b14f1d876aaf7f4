// All of Weftio's host side.
#pragma once

#include "weftio/clock.hpp"
#include "weftio/device.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/eth_rxq.hpp"
#include "weftio/eth_txq.hpp"
#include "weftio/exchange.hpp"
#include "weftio/flow.hpp"
#include "weftio/kernel.hpp"
#include "weftio/log.hpp"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"
#include "weftio/progress.hpp"
#include "weftio/rdma.hpp"
#include "weftio/refusal.hpp"
#include "weftio/semaphore.hpp"
