#include "kernel_calls.hpp"

#include <chrono>
#include <thread>

namespace weftio::doca {
namespace {

bool is_receiving(weftio_dev_control& control)
{
    return weftio_load_acquire_sys_u32(&control.function) == WEFTIO_DEV_FUNCTION_RECEIVE;
}

} // namespace

void end_waits(weftio_dev_control& control) noexcept
{
    weftio_store_release_sys_u32(&control.abort, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

bool end_receive_calls(weftio_dev_control& control) noexcept
{
    end_waits(control);
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
         is_receiving(control) && std::chrono::steady_clock::now() < end;)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    return !is_receiving(control);
}

} // namespace weftio::doca
