// A kernel that a second translation unit defines too.
#pragma once

#include "weftio/device.hpp"

namespace weftio::test {

const kernel<weftio_u32*>& kernel_of_other_unit();

} // namespace weftio::test
