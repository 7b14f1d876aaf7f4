// A device of each kind, and shorthands for its memory.
#pragma once

#include <cstdint>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "semaphore_kernels.h"
#include "unit/device/fixture.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"
#include "weftio/semaphore.hpp"

namespace weftio::test {

/// Zeroed memory that host and kernels can access.
template <class T>
class shared {
 public:
    explicit shared(const device& device, std::size_t count = 1)
        : memory_(device.allocate(count * sizeof(T), memory_kind::cpu_device))
    {}

    T* on_device() const { return static_cast<T*>(memory_.device_address()); }
    T& operator[](std::size_t at) const { return static_cast<T*>(memory_.cpu_address())[at]; }

 private:
    memory memory_;
};

/// Runs each test on the device that its parameter names.
class each_device : public testing::TestWithParam<const char*> {
 protected:
    void SetUp() override
    {
        try {
            opened_ = device::open(GetParam());
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: semaphores on " << GetParam() << "; " << refused.what();
        }
    }

    const device& where() const { return *opened_; }

    template <class Kernel, class... Arguments>
    void run(const Kernel& kernel, grid shape, Arguments&&... arguments)
    {
        running_kernel running = where().launch(kernel, shape, arguments...);
        ASSERT_TRUE(running.wait_for(patience));
    }

 private:
    std::optional<device> opened_;
};

} // namespace weftio::test
