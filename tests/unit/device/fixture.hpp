// Shared by the tests of all devices.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "patience.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

/// The specs of all devices that the tests run on.
std::vector<std::string> usable_devices();

/// Words that host and kernels share; initially 0.
class shared_words {
 public:
    shared_words(const device& device, std::size_t count)
        : count_(count), memory_(device.allocate(count * sizeof(weftio_u32), memory_kind::cpu_device))
    {}

    weftio_u32* on_device() const { return static_cast<weftio_u32*>(memory_.device_address()); }
    weftio_u32 operator[](std::size_t at) const { return weftio_load_acquire_sys_u32(word(at)); }
    void set(std::size_t at, weftio_u32 value) { weftio_store_release_sys_u32(word(at), value); }
    std::vector<weftio_u32> all() const
    {
        std::vector<weftio_u32> values;
        for (std::size_t at = 0; at < count_; ++at)
            values.push_back((*this)[at]);
        return values;
    }

 private:
    weftio_u32* word(std::size_t at) const { return static_cast<weftio_u32*>(memory_.cpu_address()) + at; }

    std::size_t count_;
    memory memory_;
};

/// The smallest host object by which a kernel can be stopped: its handle is its control block.
class stop_button {
 public:
    explicit stop_button(const device& device)
        : memory_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device))
    {}

    weftio_dev_control* handle() const { return static_cast<weftio_dev_control*>(memory_.device_address()); }
    weftio_dev_control* control() const { return static_cast<weftio_dev_control*>(memory_.cpu_address()); }
    weftio_u32 pressed() const { return weftio_load_acquire_sys_u32(&control()->abort); }

 private:
    memory memory_;
};

/// The weftio::error that `call` throws. The test fails if it throws none.
inline error error_of(const std::function<void()>& call)
{
    try {
        call();
    } catch (const error& thrown) {
        return thrown;
    }
    ADD_FAILURE() << "expected a weftio::error";
    return {errc::invalid_argument, ""};
}

} // namespace weftio::test
