// A kernel that asks for checks of its handles is included before anything that has included them without.
#include "weftio/weftio.hpp"

#define WEFTIO_DEV_CHECKS

inline void unchecked(weftio_dev_eth_rxq*) {}
WEFTIO_DEFINE_KERNEL(unchecked, "late.kernel.h"); // refused: include .*late.kernel.h.*before other headers
