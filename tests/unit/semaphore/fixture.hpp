// A device of each kind, and shorthands for its memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "semaphore_kernels.h"
#include "weftio/device.hpp"
#include "weftio/error.hpp"
#include "weftio/semaphore.hpp"

#if defined(__has_feature)
#define WEFTIO_TEST_FEATURE(NAME) __has_feature(NAME)
#else
#define WEFTIO_TEST_FEATURE(NAME) 0
#endif

namespace weftio::test {

/// Long enough for anything that ends at all, on a busy machine under a sanitizer.
inline constexpr std::chrono::seconds patience{200};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || WEFTIO_TEST_FEATURE(address_sanitizer) ||                 \
    WEFTIO_TEST_FEATURE(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// Zeroed memory that host and kernels share.
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

/// The weftio::error that `call` throws; a failed test when it throws none.
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

/// Whether `condition` comes true in time.
inline bool eventually(const std::function<bool()>& condition)
{
    auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

} // namespace weftio::test
