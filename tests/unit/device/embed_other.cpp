#include "embed_other.hpp"

#include "kernels.h"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(count_lanes, "kernels.h");

const weftio::kernel<weftio_u32*>& weftio::test::kernel_of_other_unit()
{
    return count_lanes_kernel;
}
