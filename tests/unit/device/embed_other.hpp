// A kernel that is also defined in a second translation unit.
#pragma once

#include "weftio/device.hpp"

namespace weftio::test {

const kernel<weftio_u32*>& kernel_of_other_unit();

} // namespace weftio::test
