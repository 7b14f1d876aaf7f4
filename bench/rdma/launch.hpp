// Launches a kernel of the RDMA benchmark on a core.
#pragma once

#include <chrono>

#include "common/on_core.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

inline constexpr std::chrono::seconds patience{30};

template <class Kernel, class... Arguments>
running_kernel launch_on(int core, const device& device, const Kernel& kernel, Arguments&&... arguments)
{
    on_core here(core);
    return device.launch(kernel, {}, arguments...);
}

} // namespace weftio::bench
